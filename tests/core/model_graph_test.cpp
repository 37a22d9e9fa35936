#include "core/model_graph.h"

#include <random>
#include <set>

#include "core/model_presets.h"
#include "tests/support/catch.h"
#include "tests/support/published_models.h"
#include "tests/support/scale.h"

using namespace lockstep;

namespace {

std::shared_ptr<const ModelGraph> graph_of(const char* preset, TrainingSpec training = {}) {
  return build_model_graph(*find_model_preset(preset), training);
}

/// A transformer with every switch thrown by chance, MoE and tied heads included.
ModelSpec random_transformer(std::mt19937_64& random) {
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  ModelSpec model;
  model.layers = pick(1, 5);
  model.kv_heads = pick(1, 4);
  model.heads = model.kv_heads * pick(1, 4);
  model.head_dim = 2 * pick(1, 9);
  model.hidden = pick(1, 70);
  model.intermediate = pick(1, 90);
  model.vocab = pick(1, 300);
  model.max_position = pick(1, 60);
  model.norm = pick(0, 1) == 0 ? NormKind::kLayerNorm : NormKind::kRmsNorm;
  model.activation = static_cast<ActivationKind>(pick(0, 2));
  model.position = static_cast<PositionKind>(pick(0, 2));
  model.qkv_bias = pick(0, 1) == 1;
  model.output_bias = pick(0, 1) == 1;
  model.mlp_bias = pick(0, 1) == 1;
  model.qk_norm = pick(0, 1) == 1;
  model.tied_embeddings = pick(0, 1) == 1;
  model.experts = pick(0, 3) == 0 ? pick(1, 6) : 0;
  model.experts_per_token = model.is_moe() ? pick(1, model.experts) : 0;
  return model;
}

TrainingSpec random_training(std::mt19937_64& random) {
  TrainingSpec training;
  training.attention = random() % 2 == 0 ? AttentionKind::kPlain : AttentionKind::kFlash;
  training.dropout = random() % 2 == 0 ? 0.1 : 0.0;
  return training;
}

/// Every rule that a finished template keeps, whatever the model.
void check_template(const SegmentTemplate& form) {
  std::set<int> produced{form.input};
  for (std::size_t m = 0; m < form.modules.size(); ++m) {
    const ModuleDef& module = form.modules[m];
    INFO(form.name << module.name);
    for (const std::int8_t index : module.inputs) {
      const TensorDef& tensor = form.tensors[static_cast<std::size_t>(index)];
      // Labels come from the batch, everything else from a module before.
      REQUIRE((produced.count(index) == 1 || tensor.type == TensorType::kTokenIds));
      REQUIRE(form.tensors[static_cast<std::size_t>(tensor.storage)].last_reader >=
              static_cast<int>(m));
    }
    for (const std::int8_t index : module.outputs) {
      REQUIRE(produced.insert(index).second);  // one producer
    }
    for (const std::int16_t index : module.parameters) {
      REQUIRE(static_cast<std::size_t>(index) < form.parameters.size());
    }
    REQUIRE(module.weights <= static_cast<std::int16_t>(module.parameters.size()));
    for (const std::int8_t index : module.saved) {
      const TensorDef& tensor = form.tensors[static_cast<std::size_t>(index)];
      REQUIRE(tensor.storage == index);
      REQUIRE(tensor.first_saver <= static_cast<int>(m));
      REQUIRE(tensor.saved());
    }
  }
}

}  // namespace

TEST_CASE("The graph of every preset has exactly the published number of parameters") {
  for (const test::PublishedModel& published : test::kPublishedModels) {
    INFO(published.name);
    CHECK(graph_of(published.name)->parameter_count() == published.parameters);
  }
}

TEST_CASE("The graph counts what the closed form counts, for every preset and random models") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.model.name);
    CHECK(build_model_graph(preset.model, {})->parameter_count() == parameter_count(preset.model));
  }
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(300); ++round) {
    const ModelSpec model = random_transformer(random);
    const TrainingSpec training = random_training(random);
    INFO("round " << round << ", norm " << static_cast<int>(model.norm) << ", experts "
                  << model.experts << ", qk_norm " << model.qk_norm << ", mlp_bias "
                  << model.mlp_bias);
    const auto graph = build_model_graph(model, training);
    REQUIRE(graph->parameter_count() == parameter_count(model));
    for (const SegmentTemplate& form : graph->templates) {
      check_template(form);
    }
  }
}

TEST_CASE("Every parameter belongs to exactly one module, except a tied head's") {
  std::mt19937_64 random(test::test_seed() + 1);
  for (int round = 0; round < test::scaled(100); ++round) {
    const auto graph = build_model_graph(random_transformer(random), random_training(random));
    for (const SegmentTemplate& form : graph->templates) {
      std::vector<int> uses(form.parameters.size(), 0);
      for (const ModuleDef& module : form.modules) {
        for (const std::int16_t index : module.parameters) {
          ++uses[static_cast<std::size_t>(index)];
        }
      }
      REQUIRE(uses == std::vector<int>(form.parameters.size(), 1));
    }
  }
}

TEST_CASE("Perceptrons have a norm's parameters whatever norm their transformer fields name") {
  ModelSpec model = *find_model_preset("mlp-tiny-bn");
  model.norm = NormKind::kRmsNorm;
  // 64*128 + 128 + 2*128, 128*128 + 128 + 2*128, 128*10 + 10
  CHECK(build_model_graph(model, {})->parameter_count() == 8576 + 16768 + 1290);
}

TEST_CASE("Parameters have the names and the order of Hugging Face's modules") {
  const auto gpt2 = graph_of("gpt2");
  const char* expected[] = {"wte.weight",
                            "wpe.weight",
                            "h.0.ln_1.weight",
                            "h.0.ln_1.bias",
                            "h.0.attn.c_attn.weight",
                            "h.0.attn.c_attn.bias",
                            "h.0.attn.c_proj.weight",
                            "h.0.attn.c_proj.bias",
                            "h.0.ln_2.weight",
                            "h.0.ln_2.bias",
                            "h.0.mlp.c_fc.weight",
                            "h.0.mlp.c_fc.bias",
                            "h.0.mlp.c_proj.weight",
                            "h.0.mlp.c_proj.bias",
                            "h.1.ln_1.weight"};
  std::int32_t id = 0;
  for (const char* name : expected) {
    CHECK(gpt2->parameter_name(id++) == name);
  }
  CHECK(gpt2->parameter_total() == 2 + 12 * 12 + 3);
  CHECK(gpt2->parameter(gpt2->parameter_total() - 1).tied);

  const auto llama = graph_of("llama-2-7b");
  const char* llama_names[] = {"embed_tokens.weight",
                               "layers.0.self_attn.q_proj.weight",
                               "layers.0.self_attn.k_proj.weight",
                               "layers.0.self_attn.v_proj.weight",
                               "layers.0.self_attn.o_proj.weight",
                               "layers.0.mlp.gate_proj.weight",
                               "layers.0.mlp.up_proj.weight",
                               "layers.0.mlp.down_proj.weight",
                               "layers.0.input_layernorm.weight",
                               "layers.0.post_attention_layernorm.weight",
                               "layers.1.self_attn.q_proj.weight"};
  id = 0;
  for (const char* name : llama_names) {
    CHECK(llama->parameter_name(id++) == name);
  }
  CHECK(llama->parameter_name(llama->parameter_total() - 2) == "norm.weight");
  CHECK(llama->parameter_name(llama->parameter_total() - 1) == "lm_head.weight");
  CHECK_FALSE(llama->parameter(llama->parameter_total() - 1).tied);
}

TEST_CASE("Modules are found by their number in the whole model") {
  const auto graph = graph_of("gpt2");
  CHECK(graph->module_name(0) == "embedding");
  CHECK(graph->module(0).kind == ModuleKind::kEmbedding);
  const Segment& second = graph->segments[2];
  CHECK(second.layer == 1);
  const auto first_module = static_cast<std::uint32_t>(second.first_module);
  CHECK(graph->module_name(first_module) == "h.1.norm1");
  CHECK(graph->segment_of(first_module).layer == 1);
  CHECK(graph->segment_of(first_module - 1).layer == 0);
  const auto last = static_cast<std::uint32_t>(graph->module_count()) - 1;
  CHECK(graph->module_name(last) == "loss");
  CHECK(graph->module_name(last + 1) == "-");
  CHECK(graph->module_name(0xffffffffU) == "-");
}

TEST_CASE("Only what tensor parallelism leaves as a part of a sum is marked partial") {
  const auto check =
      [](const char* preset, std::set<std::string> with_sp, const std::set<std::string>& always) {
        const auto graph = graph_of(preset);
        for (std::int32_t id = 0; id < graph->parameter_total(); ++id) {
          const ParameterDef& parameter = graph->parameter(id);
          INFO(preset << " " << graph->parameter_name(id));
          const PartialGradient expected =
              always.count(parameter.suffix) != 0    ? PartialGradient::kAlways
              : with_sp.count(parameter.suffix) != 0 ? PartialGradient::kWithSequenceParallel
                                                     : PartialGradient::kNever;
          CHECK(parameter.partial == expected);
        }
      };
  // Norms and biases of row-cut products see only their rank's tokens under sequence parallelism.
  check("gpt2",
        {"wpe.weight",
         "ln_1.weight",
         "ln_1.bias",
         "attn.c_proj.bias",
         "ln_2.weight",
         "ln_2.bias",
         "mlp.c_proj.bias",
         "ln_f.weight",
         "ln_f.bias"},
        {});
  // Norms of heads see only their rank's heads.
  check("qwen3-0.6b",
        {"input_layernorm.weight", "post_attention_layernorm.weight", "norm.weight"},
        {"self_attn.q_norm.weight", "self_attn.k_norm.weight"});
  check("mixtral-8x7b",
        {"input_layernorm.weight",
         "post_attention_layernorm.weight",
         "norm.weight",
         "mlp.gate.weight"},
        {});
}

TEST_CASE("Rotation works in place and reaches the storage of its input") {
  const auto plain = graph_of("llama-3.1-8b");
  const auto normed = graph_of("qwen3-8b");
  for (const ModelGraph* graph : {plain.get(), normed.get()}) {
    const SegmentTemplate& form = graph->templates[1];
    for (const ModuleDef& module : form.modules) {
      if (module.kind == ModuleKind::kRope) {
        const auto in = static_cast<std::size_t>(module.inputs[0]);
        const auto out = static_cast<std::size_t>(module.outputs[0]);
        CHECK(form.tensors[out].alias);
        CHECK(form.tensors[out].storage == module.inputs[0]);
        CHECK(form.tensors[in].saved());         // attention reads it in backward
        CHECK_FALSE(form.tensors[out].saved());  // counted once, with its storage
      }
    }
  }
}

TEST_CASE("Tensors with two readers have two gradient sources") {
  const auto graph = graph_of("mixtral-8x7b");
  for (const TensorDef& tensor : graph->templates[1].tensors) {
    INFO(tensor.name);
    const bool twice =
        tensor.name == "block input" || tensor.name == "middle" || tensor.name == "norm2";
    const bool none =
        tensor.statistic || tensor.type != TensorType::kActivation || tensor.name == "block output";
    CHECK(tensor.gradient_sources == (none ? 0 : twice ? 2 : 1));
  }
}
