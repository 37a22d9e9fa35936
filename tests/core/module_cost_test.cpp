#include "core/module_cost.h"

#include <string>

#include "core/model_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

/// Llama form with numbers small enough to multiply by hand: h 4, 2 heads of 2, 1 kv head, f 6.
ModelSpec tiny_llama() {
  ModelSpec model;
  model.layers = 2;
  model.hidden = 4;
  model.heads = 2;
  model.kv_heads = 1;
  model.head_dim = 2;
  model.intermediate = 6;
  model.vocab = 10;
  model.max_position = 5;
  model.norm = NormKind::kRmsNorm;
  model.activation = ActivationKind::kSwiGlu;
  model.position = PositionKind::kRope;
  model.qkv_bias = model.output_bias = model.mlp_bias = false;
  model.tied_embeddings = false;
  return model;
}

/// GPT form: the same sizes, 2 kv heads, LayerNorm, biases, learned positions.
ModelSpec tiny_gpt() {
  ModelSpec model = tiny_llama();
  model.kv_heads = 2;
  model.norm = NormKind::kLayerNorm;
  model.activation = ActivationKind::kGelu;
  model.position = PositionKind::kLearned;
  model.qkv_bias = model.output_bias = model.mlp_bias = true;
  return model;
}

TrainingSpec training_of(AttentionKind attention, double dropout = 0.0) {
  TrainingSpec training;
  training.attention = attention;
  training.dropout = dropout;
  return training;
}

/// A graph with the sizes that its costs are asked for.
struct Case {
  ModelSpec model;
  TrainingSpec training = training_of(AttentionKind::kFlash);
  LocalSizes sizes{2, 3, 1, false};
  std::shared_ptr<const ModelGraph> graph = build_model_graph(model, training);

  ModuleCost of(const std::string& name) const {
    for (std::uint32_t id = 0; id < static_cast<std::uint32_t>(graph->module_count()); ++id) {
      if (graph->module_name(id) == name) {
        return module_cost(*graph, id, training, sizes);
      }
    }
    FAIL("no module " << name);
    return {};
  }
  ModuleCost segment(std::int32_t index) const {
    return segment_cost(*graph, index, training, sizes);
  }
  std::int32_t head() const { return static_cast<std::int32_t>(graph->segments.size()) - 1; }
};

double backward_flops(const ModuleCost& cost) {
  return cost.backward_input_flops + cost.backward_weight_flops;
}

ModelSpec gpt_block(std::int64_t hidden, std::int64_t heads) {
  ModelSpec model;
  model.hidden = hidden;
  model.heads = model.kv_heads = heads;
  model.head_dim = hidden / heads;
  model.intermediate = 4 * hidden;
  return model;
}

}  // namespace

TEST_CASE("A GPT layer takes 24bsh^2 + 4bs^2h forward and twice that backward") {
  // Narayanan et al. 2021 (arXiv:2104.04473), appendix: with f = 4h.
  for (const double h : {64.0, 768.0, 12288.0}) {
    for (const double s : {16.0, 1024.0}) {
      for (const double b : {1.0, 3.0}) {
        const Case block{gpt_block(static_cast<std::int64_t>(h), 16),
                         training_of(AttentionKind::kPlain, 0.1),
                         {static_cast<std::int64_t>(b), static_cast<std::int64_t>(s), 1, false}};
        const ModuleCost cost = block.segment(1);
        const double forward = 24 * b * s * h * h + 4 * b * s * s * h;
        CHECK(cost.forward_flops == forward);
        CHECK(backward_flops(cost) == 2 * forward);
        CHECK(cost.backward_weight_flops == 24 * b * s * h * h);
      }
    }
  }
}

TEST_CASE("Flash attention adds one product of scores to backward: 2.5 times forward") {
  const LocalSizes sizes{2, 128, 1, false};
  const Case plain{gpt_block(64, 4), training_of(AttentionKind::kPlain), sizes};
  const Case flash{gpt_block(64, 4), training_of(AttentionKind::kFlash), sizes};
  const double forward = 4.0 * 2 * 128 * 128 * 64;
  CHECK(plain.of("h.0.attn.core").forward_flops == forward);
  CHECK(flash.of("h.0.attn.core").forward_flops == forward);
  CHECK(plain.of("h.0.attn.core").backward_input_flops == 2 * forward);
  CHECK(flash.of("h.0.attn.core").backward_input_flops == 2.5 * forward);
  CHECK(flash.of("h.0.attn.core").backward_weight_flops == 0);
}

TEST_CASE("The head takes 2bshV forward, over the padded vocabulary where it is cut") {
  Case whole{*find_model_preset("gpt2"), training_of(AttentionKind::kFlash), {4, 1024, 1, false}};
  CHECK(whole.of("head").forward_flops == 2.0 * 4 * 1024 * 768 * 50257);
  CHECK(backward_flops(whole.of("head")) == 2 * whole.of("head").forward_flops);
  whole.sizes.tensor = 2;  // 50257 = 2 * 25129 - 1
  CHECK(whole.of("head").forward_flops == 2.0 * 4 * 1024 * 768 * 25129);
}

TEST_CASE("A Llama layer with grouped queries, by hand") {
  // Llama-3.1-8B: h 4096, a 32, k 8, dh 128, f 14336; one sequence of 8192.
  const Case llama{
      *find_model_preset("llama-3.1-8b"), training_of(AttentionKind::kFlash), {1, 8192, 1, false}};
  const double s = 8192;
  const double qkv = 2 * s * 4096 * (4096 + 2 * 1024);
  const double out = 2 * s * 4096 * 4096;
  const double attention = 4 * s * s * 4096;
  const double up = 2 * s * 4096 * 2 * 14336;
  const double down = 2 * s * 14336 * 4096;
  CHECK(llama.of("layers.0.attn.qkv").forward_flops == qkv);
  CHECK(llama.of("layers.0.attn.out").forward_flops == out);
  CHECK(llama.of("layers.0.attn.core").forward_flops == attention);
  CHECK(llama.of("layers.0.mlp.up").forward_flops == up);
  CHECK(llama.of("layers.0.mlp.down").forward_flops == down);
  CHECK(llama.segment(1).forward_flops == qkv + out + attention + up + down);
  CHECK(backward_flops(llama.segment(1)) == 2 * (qkv + out + up + down) + 2.5 * attention);
}

TEST_CASE("Products over the whole model are 6 FLOPs per matrix parameter and token") {
  for (const char* name : {"gpt2", "llama-3.1-8b", "qwen3-8b", "mixtral-8x7b"}) {
    INFO(name);
    const Case whole{
        *find_model_preset(name), training_of(AttentionKind::kPlain), {1, 64, 1, false}};
    const ModelSpec& m = whole.model;
    double flops = 0;
    double attention = 0;
    for (std::uint32_t id = 0; id < static_cast<std::uint32_t>(whole.graph->module_count()); ++id) {
      const ModuleCost cost = module_cost(*whole.graph, id, whole.training, whole.sizes);
      const double sum = cost.forward_flops + backward_flops(cost);
      flops += sum;
      attention += whole.graph->module(id).kind == ModuleKind::kAttention ? sum : 0;
    }
    const std::int64_t experts = m.is_moe() ? m.experts_per_token : 1;
    const std::int64_t matrices =
        m.layers *
            (m.hidden * (2 * m.query_width() + 2 * m.kv_width()) +
             experts * (m.gated_mlp() ? 3 : 2) * m.hidden * m.intermediate + m.experts * m.hidden) +
        m.vocab * m.hidden;
    CHECK(flops - attention == 6.0 * 64 * static_cast<double>(matrices));
    CHECK(attention == 3.0 * 4 * 64 * 64 * static_cast<double>(m.layers * m.query_width()));
  }
}

TEST_CASE("Tensor parallelism divides all products, sequence parallelism changes none") {
  Case cut{
      *find_model_preset("llama-3.1-8b"), training_of(AttentionKind::kFlash), {1, 64, 1, false}};
  const ModuleCost whole = cut.segment(1);
  for (const std::int64_t t : {2, 4, 8}) {
    for (const bool sequence_parallel : {false, true}) {
      cut.sizes.tensor = t;
      cut.sizes.sequence_parallel = sequence_parallel;
      CHECK(cut.segment(1).forward_flops * static_cast<double>(t) == whole.forward_flops);
      CHECK(backward_flops(cut.segment(1)) * static_cast<double>(t) == backward_flops(whole));
    }
  }
}

TEST_CASE("Each token meets only the experts it is routed to, and all of the router") {
  ModelSpec model = tiny_llama();
  model.experts = 4;
  model.experts_per_token = 2;
  const Case mixture{model};
  // 6 tokens: router 4 -> 4; 12 expert rows: 4 -> 2 * 6 and 6 -> 4.
  CHECK(mixture.of("layers.0.mlp.router").forward_flops == 2 * 6 * 4 * 4);
  CHECK(mixture.of("layers.0.mlp.up").forward_flops == 2 * 12 * 4 * 12);
  CHECK(mixture.of("layers.0.mlp.down").forward_flops == 2 * 12 * 6 * 4);
  // All experts' weights are read: 4 * 12 * 4 elements, beside 12 rows of 4 in and of 12 out.
  CHECK(mixture.of("layers.0.mlp.up").forward_bytes == 2 * (12 * 4 + 4 * 12 * 4 + 12 * 12));
  // route: logits 6x4 in, weights 6x2 and ids 6x2 (8 bytes) out.
  CHECK(mixture.of("layers.0.mlp.route").forward_bytes == 2 * 24 + 2 * 12 + 8 * 12);
  CHECK(mixture.of("layers.0.mlp.route").backward_bytes == 2 * 12 + 2 * 24 + 8 * 12 + 2 * 24);
  // dispatch: x 6x4 and ids in, 12 rows of 4 out.
  CHECK(mixture.of("layers.0.mlp.dispatch").forward_bytes == 2 * 24 + 8 * 12 + 2 * 48);
  CHECK(mixture.of("layers.0.mlp.dispatch").backward_bytes == 2 * 48 + 8 * 12 + 2 * 24);
  // combine: rows, weights, ids in, 6x4 out; backward reads these and dy, writes drows, dweights.
  CHECK(mixture.of("layers.0.mlp.combine").forward_bytes == 2 * 48 + 2 * 12 + 8 * 12 + 2 * 24);
  CHECK(mixture.of("layers.0.mlp.combine").backward_bytes ==
        2 * 24 + (2 * 48 + 2 * 12 + 8 * 12) + (2 * 48 + 2 * 12));
  // The second norm's output goes to the router and to dispatch: the router adds its part.
  CHECK(mixture.of("layers.0.mlp.router").backward_bytes ==
        2 * (2 * 24 + 24 + 16 + 24) + 2 * 16 + 3 * 2 * 24);
}

TEST_CASE("A product reads and writes its operands once, by hand") {
  const Case gpt{tiny_gpt()};
  // qkv: 6 x 4 times 4 x 12, bias 12, bf16.
  const ModuleCost qkv = gpt.of("h.0.attn.qkv");
  CHECK(qkv.forward_flops == 2 * 6 * 4 * 12);
  CHECK(qkv.forward_bytes == 2 * (24 + 48 + 12 + 72));
  // dy twice, W, dx, x, dW, db.
  CHECK(qkv.backward_bytes == 2 * (2 * 72 + 48 + 24 + 24 + 48 + 12));
  CHECK(qkv.saved_bytes == 2 * 24);
}

TEST_CASE("Cut products work on all tokens, uncut modules on a rank's own") {
  Case gpt{tiny_gpt()};
  gpt.sizes = {2, 4, 2, true};  // 8 tokens, 4 of them on this rank between the products
  const ModuleCost up = gpt.of("h.0.mlp.up");  // column: 8 x 4 times 4 x 3, bias 3
  CHECK(up.forward_bytes == 2 * (32 + 12 + 3 + 24));
  const ModuleCost down = gpt.of("h.0.mlp.down");  // row: 8 x 3 times 3 x 4, bias 4
  CHECK(down.forward_bytes == 2 * (24 + 12 + 4 + 32));
  CHECK(down.forward_flops == 2 * 8 * 3 * 4);
  // What is saved is the rank's own part of the tokens.
  CHECK(up.saved_bytes == 2 * 16);
  // LayerNorm: 4 x 4 in and out, weight and bias, mean and 1/std in fp32.
  CHECK(gpt.of("h.0.norm2").forward_bytes == 2 * (16 + 4 + 4 + 16) + 4 * 2 * 4);
}

TEST_CASE("Norms, by hand") {
  const Case gpt{tiny_gpt()};
  const ModuleCost layer_norm = gpt.of("h.0.norm2");
  CHECK(layer_norm.forward_flops == 0);
  CHECK(layer_norm.forward_bytes == 2 * (24 + 8 + 24) + 4 * 12);
  // dy, x, statistics, weight, dx, dweight, dbias; dx is added to the residual's gradient.
  CHECK(layer_norm.backward_bytes == 2 * (24 + 24 + 4 + 24 + 8) + 4 * 12 + 3 * 2 * 24);
  CHECK(layer_norm.saved_bytes == 2 * 24 + 4 * 12);
  CHECK(layer_norm.saved_statistic_bytes == 4 * 12);

  ModelSpec model = tiny_llama();
  model.qk_norm = true;
  const Case qwen{model};
  // RMSNorm of heads: fused qkv 6 x 8 in and out, weights of 2 and 2, 1/rms of 2 + 1 heads.
  CHECK(qwen.of("layers.0.attn.qk_norm").forward_bytes == 2 * (48 + 4 + 48) + 4 * 18);
  CHECK(qwen.of("layers.0.attn.qk_norm").backward_bytes == 2 * (48 + 48 + 4 + 48 + 4) + 4 * 18);
}

TEST_CASE("Element-wise modules, by hand") {
  const Case gpt{tiny_gpt(), training_of(AttentionKind::kFlash, 0.1)};
  CHECK(gpt.of("h.0.mlp.activation").forward_bytes == 2 * (36 + 36));
  CHECK(gpt.of("h.0.mlp.activation").backward_bytes == 2 * (36 + 36 + 36));
  CHECK(gpt.of("h.0.attn.dropout").forward_bytes == 2 * (24 + 24) + 24);
  CHECK(gpt.of("h.0.attn.dropout").backward_bytes == 2 * (24 + 24) + 24);
  CHECK(gpt.of("h.0.attn.residual").forward_bytes == 2 * 3 * 24);
  CHECK(gpt.of("h.0.attn.residual").backward_bytes == 0);
  const Case llama{tiny_llama()};
  CHECK(llama.of("layers.0.mlp.activation").forward_bytes == 2 * (72 + 36));
  CHECK(llama.of("layers.0.mlp.activation").backward_bytes == 2 * (36 + 72 + 72));
  // Rotation: 2 query heads and 1 key head of 2, read and written; not the value head.
  CHECK(llama.of("layers.0.attn.rope").forward_bytes == 2 * 2 * 6 * 6);
  CHECK(llama.of("layers.0.attn.rope").backward_bytes == 2 * 2 * 6 * 6);
  CHECK(llama.of("layers.0.attn.rope").saved_bytes == 0);
}

TEST_CASE("Attention, by hand") {
  // 2 samples of 3 tokens, 2 heads: scores 2 * 2 * 3 * 3 = 36; fused qkv 6 x 8, output 6 x 4.
  const Case flash{tiny_llama()};
  CHECK(flash.of("layers.0.attn.core").forward_bytes == 2 * (48 + 24) + 4 * 12);
  CHECK(flash.of("layers.0.attn.core").backward_bytes == 2 * (24 + 48 + 24 + 48) + 4 * 12);
  CHECK(flash.of("layers.0.attn.core").saved_bytes == 2 * (48 + 24) + 4 * 12);
  CHECK(flash.of("layers.0.attn.core").saved_statistic_bytes == 4 * 12);
  const Case plain{tiny_llama(), training_of(AttentionKind::kPlain)};
  CHECK(plain.of("layers.0.attn.core").forward_bytes == 2 * (48 + 24 + 36));
  CHECK(plain.of("layers.0.attn.core").backward_bytes == 2 * (24 + 48 + 36 + 48));
  const Case dropped{tiny_llama(), training_of(AttentionKind::kPlain, 0.1)};
  CHECK(dropped.of("layers.0.attn.core").forward_bytes == 2 * (48 + 24 + 36 + 36) + 36);
  CHECK(dropped.of("layers.0.attn.core").backward_bytes == 2 * (24 + 48 + 36 + 36 + 48) + 36);
  CHECK(dropped.of("layers.0.attn.core").saved_bytes == 2 * (48 + 36 + 36) + 36);
  CHECK(dropped.of("layers.0.attn.core").saved_statistic_bytes == 0);
}

TEST_CASE("Embedding, positions and loss, by hand") {
  Case gpt{tiny_gpt()};
  // 6 ids of 8 bytes, 6 rows of 4 found, 6 x 4 written; the gradient is the whole 10 x 4 table.
  CHECK(gpt.of("embedding").forward_bytes == 8 * 6 + 2 * (24 + 24));
  CHECK(gpt.of("embedding").backward_bytes == 8 * 6 + 2 * (24 + 40));
  CHECK(gpt.of("embedding").saved_bytes == 8 * 6);
  CHECK(gpt.of("embedding").forward_flops == 0);
  // 3 rows of the position table serve both samples.
  CHECK(gpt.of("position").forward_bytes == 2 * (2 * 24 + 12));
  CHECK(gpt.of("position").backward_bytes == 2 * (24 + 20));
  // Logits 6 x 10 four times, labels twice, rows of fp32: max, (max, sum, target), all three.
  CHECK(gpt.of("loss").forward_bytes == 2 * 4 * 60 + 2 * 8 * 6 + 7 * 4 * 6);
  CHECK(gpt.of("loss").backward_bytes == 0);
  gpt.sizes.tensor = 2;  // half of the rows are found, all are written
  CHECK(gpt.of("embedding").forward_bytes == 8 * 6 + 2 * (12 + 24));
  CHECK(gpt.of("embedding").backward_bytes == 8 * 6 + 2 * (24 + 20));
}

TEST_CASE("A perceptron, by hand: no gradient of the data, sums of batch norm in fp32") {
  ModelSpec model;
  model.family = ModelFamily::kMlp;
  model.widths = {5, 7, 3};
  model.mlp_norm = MlpNormKind::kBatchNorm;
  TrainingSpec training;
  training.precision = Precision::kFp32;
  const Case mlp{model, training, {4, 1, 1, false}};
  const ModuleCost first = mlp.of("layers.0.linear");
  CHECK(first.forward_flops == 2 * 4 * 5 * 7);
  CHECK(first.backward_input_flops == 0);
  CHECK(first.backward_weight_flops == 2 * 4 * 5 * 7);
  CHECK(first.backward_bytes == 4 * (28 + 20 + 35 + 7));
  const ModuleCost head = mlp.of("layers.1.head");
  CHECK(head.backward_input_flops == 2 * 4 * 7 * 3);
  // Two passes over 4 x 7; sums: 7 sums, 7 squares, a count; weight, bias; running mean, variance.
  const ModuleCost norm = mlp.of("layers.0.batch_norm");
  CHECK(norm.forward_bytes == 4 * ((28 + 15) + (28 + 15 + 14 + 2 * 14 + 28)));
  CHECK(norm.backward_bytes == 4 * ((2 * 28 + 2 * 15) + (2 * 28 + 2 * 15 + 7 + 28) + 14));
  CHECK(norm.saved_statistic_bytes == 4 * 15);
  CHECK(mlp.of("layers.0.activation").backward_bytes == 4 * 3 * 28);
}

TEST_CASE("Autocast reads weights as 16-bit casts and writes their gradients in fp32") {
  TrainingSpec training = training_of(AttentionKind::kFlash);
  training.precision = Precision::kAutocast;
  const Case llama{tiny_llama(), training};
  const ModuleCost out = llama.of("layers.0.attn.out");  // 6 x 4 times 4 x 4
  CHECK(out.forward_bytes == 2 * (24 + 16 + 24));
  CHECK(out.backward_bytes == 2 * (2 * 24 + 16 + 24 + 24) + 4 * 16);
  // Norm weights are not cast.
  CHECK(llama.of("layers.0.norm2").forward_bytes == 2 * (24 + 24) + 4 * 4 + 4 * 6);
}

TEST_CASE("The cost of a segment is the sum of its modules'") {
  const Case llama{tiny_llama()};
  for (std::int32_t s = 0; s <= llama.head(); ++s) {
    const Segment& segment = llama.graph->segments[static_cast<std::size_t>(s)];
    ModuleCost sum;
    for (std::size_t m = 0; m < llama.graph->form(segment).modules.size(); ++m) {
      sum += module_cost(
          *llama.graph,
          static_cast<std::uint32_t>(segment.first_module) + static_cast<std::uint32_t>(m),
          llama.training,
          llama.sizes);
    }
    CHECK(sum.forward_bytes == llama.segment(s).forward_bytes);
    CHECK(sum.backward_bytes == llama.segment(s).backward_bytes);
    CHECK(sum.saved_bytes == llama.segment(s).saved_bytes);
  }
}
