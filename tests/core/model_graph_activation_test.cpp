// What a block saves for backward, against the closed forms of the literature, to the byte.
// Korthikanti et al. 2022 (arXiv:2205.05198), table 2: 16-bit activations, dropout on, plain
// attention, f = 4h. They leave out the statistics of norms and softmax; so does saved_bytes here,
// and a test lists what that is, by name.
#include <map>
#include <string>

#include "core/model_graph.h"
#include "core/model_presets.h"
#include "core/module_cost.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

struct Sizes {
  std::int64_t s, b, h, a, t;
};

constexpr Sizes kGrid[] = {{2048, 1, 12288, 96, 8},
                           {1024, 4, 768, 12, 1},
                           {1024, 4, 768, 12, 2},
                           {512, 3, 1024, 16, 4},
                           {64, 2, 64, 8, 8},
                           {4096, 1, 4096, 32, 4},
                           {2048, 2, 6144, 64, 8},
                           {24, 5, 96, 6, 3}};

ModelSpec gpt(const Sizes& z) {
  ModelSpec model;
  model.hidden = z.h;
  model.heads = model.kv_heads = z.a;
  model.head_dim = z.h / z.a;
  model.intermediate = 4 * z.h;
  return model;
}

TrainingSpec training_of(AttentionKind attention, double dropout) {
  TrainingSpec training;
  training.attention = attention;
  training.dropout = dropout;
  return training;
}

LocalSizes local(const Sizes& z, bool tensor_parallel, bool sequence_parallel) {
  return {z.b, z.s, tensor_parallel ? z.t : 1, sequence_parallel};
}

std::int64_t bytes_of(const TensorDef& tensor,
                      const ModelGraph& graph,
                      const TrainingSpec& training,
                      const LocalSizes& sizes) {
  return elements_of(tensor, graph.model, sizes) * size_of(dtype_of(tensor.type, training));
}

struct Saved {
  std::int64_t bytes = 0;  ///< without statistics
  std::map<std::string, std::int64_t> statistics;
};

/// What one block keeps from forward to backward. Selective recomputation drops the tensors of
/// score size, full recomputation all but the block's input.
Saved saved_by_block(const ModelSpec& model,
                     const TrainingSpec& training,
                     const LocalSizes& sizes,
                     Recompute recompute) {
  const auto graph = build_model_graph(model, training);
  const SegmentTemplate& block = graph->templates[1];
  Saved saved;
  for (std::size_t index = 0; index < block.tensors.size(); ++index) {
    const TensorDef& tensor = block.tensors[index];
    const bool is_input = static_cast<std::int8_t>(index) == block.input;
    const bool dropped = (recompute == Recompute::kSelective && tensor.region == Region::kScores) ||
                         (recompute == Recompute::kFull && !is_input);
    if (!tensor.saved() || dropped) {
      continue;
    }
    const std::int64_t bytes = bytes_of(tensor, *graph, training, sizes);
    if (tensor.statistic) {
      saved.statistics[tensor.name] += bytes;
    } else {
      saved.bytes += bytes;
    }
  }
  return saved;
}

std::int64_t saved_bytes(const Sizes& z, bool tp, bool sp, Recompute recompute) {
  return saved_by_block(
             gpt(z), training_of(AttentionKind::kPlain, 0.1), local(z, tp, sp), recompute)
      .bytes;
}

/// Bytes of 96 layers of GPT-3 175B (s 2048, b 1, t 8) in GiB.
double gpt3_gib(bool sp, Recompute recompute) {
  return static_cast<double>(96 * saved_bytes(kGrid[0], true, sp, recompute)) / (1 << 30);
}

}  // namespace

TEST_CASE("A GPT block saves what table 2 of Korthikanti et al. says, to the byte in every cell") {
  for (const Sizes& z : kGrid) {
    INFO("s " << z.s << " b " << z.b << " h " << z.h << " a " << z.a << " t " << z.t);
    const std::int64_t sbh = z.s * z.b * z.h;
    const std::int64_t scores = 5 * z.a * z.s * z.s * z.b;  // sbh * 5as/h
    // No tensor parallelism.
    CHECK(saved_bytes(z, false, false, Recompute::kNone) == 34 * sbh + scores);
    CHECK(saved_bytes(z, false, false, Recompute::kSelective) == 34 * sbh);
    CHECK(saved_bytes(z, false, false, Recompute::kFull) == 2 * sbh);
    // Tensor parallelism.
    CHECK(saved_bytes(z, true, false, Recompute::kNone) ==
          10 * sbh + 24 * sbh / z.t + scores / z.t);
    CHECK(saved_bytes(z, true, false, Recompute::kSelective) == 10 * sbh + 24 * sbh / z.t);
    CHECK(saved_bytes(z, true, false, Recompute::kFull) == 2 * sbh);
    // With sequence parallelism; the checkpoint is itself sharded.
    CHECK(saved_bytes(z, true, true, Recompute::kNone) == 34 * sbh / z.t + scores / z.t);
    CHECK(saved_bytes(z, true, true, Recompute::kSelective) == 34 * sbh / z.t);
    CHECK(saved_bytes(z, true, true, Recompute::kFull) == 2 * sbh / z.t);
  }
}

TEST_CASE("GPT-3 175B saves 51.75 GiB in 96 layers at t = 8, and what each remedy leaves of it") {
  CHECK(gpt3_gib(false, Recompute::kNone) == 51.75);
  CHECK(gpt3_gib(false, Recompute::kSelective) == 29.25);
  CHECK(gpt3_gib(true, Recompute::kNone) == 32.0625);
  CHECK(gpt3_gib(true, Recompute::kSelective) == 9.5625);
  CHECK(gpt3_gib(false, Recompute::kFull) == 4.5);
  CHECK(gpt3_gib(true, Recompute::kFull) == 0.5625);
}

TEST_CASE("What the closed forms leave out are mean and 1/std of norms, and log-sum-exp of flash") {
  for (const Sizes& z : kGrid) {
    const std::int64_t norms = 2 * 2 * 4 * z.s * z.b;  // two norms, two fp32 numbers per token
    using Statistics = std::map<std::string, std::int64_t>;
    const TrainingSpec plain = training_of(AttentionKind::kPlain, 0.1);
    const TrainingSpec flash = training_of(AttentionKind::kFlash, 0.1);
    CHECK(saved_by_block(gpt(z), plain, local(z, true, false), Recompute::kNone).statistics ==
          Statistics{{"norm statistics", norms}});
    CHECK(saved_by_block(gpt(z), plain, local(z, true, true), Recompute::kNone).statistics ==
          Statistics{{"norm statistics", norms / z.t}});
    CHECK(saved_by_block(gpt(z), flash, local(z, true, true), Recompute::kNone).statistics ==
          Statistics{{"norm statistics", norms / z.t}, {"log-sum-exp", 4 * z.a * z.s * z.b / z.t}});
    CHECK(saved_by_block(gpt(z), plain, local(z, true, true), Recompute::kFull).statistics.empty());
  }
}

TEST_CASE("Flash attention saves what selective recomputation saves") {
  for (const Sizes& z : kGrid) {
    const TrainingSpec flash = training_of(AttentionKind::kFlash, 0.1);
    CHECK(saved_by_block(gpt(z), flash, local(z, true, true), Recompute::kNone).bytes ==
          34 * z.s * z.b * z.h / z.t);
  }
}

TEST_CASE("Another width of the MLP turns 34 into 18 + 4f/h, another precision into 16x + 2") {
  for (const Sizes& z : kGrid) {
    ModelSpec model = gpt(z);
    model.intermediate = 7 * z.t;
    TrainingSpec training = training_of(AttentionKind::kPlain, 0.1);
    const std::int64_t sb = z.s * z.b;
    CHECK(saved_by_block(model, training, local(z, false, false), Recompute::kSelective).bytes ==
          18 * sb * z.h + 4 * sb * model.intermediate);
    // fp32: x = 4 bytes, (16x + 2) sbh + (2x + 1) a s^2 b; masks stay one byte.
    training.precision = Precision::kFp32;
    CHECK(saved_by_block(gpt(z), training, local(z, false, false), Recompute::kNone).bytes ==
          66 * sb * z.h + 9 * z.a * z.s * sb);
  }
}

TEST_CASE("Without dropout the masks and the dropped copy of the scores are not saved") {
  const TrainingSpec training = training_of(AttentionKind::kPlain, 0.0);
  for (const Sizes& z : kGrid) {
    CHECK(saved_by_block(gpt(z), training, local(z, false, false), Recompute::kNone).bytes ==
          32 * z.s * z.b * z.h + 2 * z.a * z.s * z.s * z.b);
  }
}

TEST_CASE("A Llama block saves sbh(12 + 4k/a + 6f/h)/t: the published 8f/h less a fused SwiGLU") {
  // The published form (arXiv:2411.06465: sbh(12 + 4k/a + 8f/h)/t) counts four tensors of f per
  // token: gate, up, silu(gate) and their product. A fused SwiGLU reads gate and up in backward
  // and makes silu(gate) again, so three remain: 2sbf/t bytes less.
  for (const char* name : {"llama-2-7b", "llama-3.1-8b", "llama-3.1-405b", "qwen2.5-7b"}) {
    const ModelSpec model = *find_model_preset(name);
    REQUIRE(model.query_width() == model.hidden);
    for (const std::int64_t t : {1, 2, 4}) {
      INFO(name << " t " << t);
      const LocalSizes sizes{2, 4096, t, t > 1};
      const std::int64_t sb = 2 * 4096;
      const Saved saved =
          saved_by_block(model, training_of(AttentionKind::kFlash, 0.0), sizes, Recompute::kNone);
      const std::int64_t published =
          sb * (12 * model.hidden + 4 * model.kv_width() + 8 * model.intermediate) / t;
      CHECK(saved.bytes == published - 2 * sb * model.intermediate / t);
      CHECK(saved.statistics.at("norm statistics") == 2 * 4 * sb / t);
      CHECK(saved.statistics.at("log-sum-exp") == 4 * sb * model.heads / t);
    }
  }
}

TEST_CASE("A mixture saves per expert row what a dense MLP saves per token, and its routing") {
  const ModelSpec model = *find_model_preset("mixtral-8x7b");
  const std::int64_t sb = 4096;
  const LocalSizes sizes{1, sb, 1, false};
  const Saved saved =
      saved_by_block(model, training_of(AttentionKind::kFlash, 0.0), sizes, Recompute::kNone);
  // Attention half and the second norm as in Llama; two expert rows per token: rows in, gate, up,
  // product, rows out (for the gradient of the router's weights); router: input is the norm's
  // output, logits, weights, and the chosen experts as int64.
  const std::int64_t attention = 12 * model.hidden + 4 * model.kv_width();
  const std::int64_t rows = 2 * 2 * (2 * model.hidden + 3 * model.intermediate);
  const std::int64_t routing = 2 * 8 + 2 * 2 + 8 * 2;
  CHECK(saved.bytes == sb * (attention + rows + routing));
}

TEST_CASE("Embedding and head save tokens, masks and the norm's input and output") {
  const Sizes z{64, 2, 32, 4, 2};
  const TrainingSpec training = training_of(AttentionKind::kPlain, 0.1);
  const auto graph = build_model_graph(gpt(z), training);
  const LocalSizes sizes = local(z, true, true);
  const std::int64_t sbh = z.s * z.b * z.h;
  const auto saved = [&](std::int32_t segment) {
    const ModuleCost cost = segment_cost(*graph, segment, training, sizes);
    return cost.saved_bytes - cost.saved_statistic_bytes;
  };
  CHECK(saved(0) == 8 * z.s * z.b + sbh / z.t);  // token ids are whole on every rank
  CHECK(saved(static_cast<std::int32_t>(graph->segments.size()) - 1) == 4 * sbh / z.t);
}

TEST_CASE("Module costs save, module by module, what the graph says") {
  for (const Sizes& z : kGrid) {
    for (const AttentionKind attention : {AttentionKind::kPlain, AttentionKind::kFlash}) {
      const TrainingSpec training = training_of(attention, 0.1);
      const LocalSizes sizes = local(z, true, true);
      const auto graph = build_model_graph(gpt(z), training);
      const ModuleCost cost = segment_cost(*graph, 1, training, sizes);
      const Saved saved = saved_by_block(gpt(z), training, sizes, Recompute::kNone);
      CHECK(cost.saved_bytes - cost.saved_statistic_bytes == saved.bytes);
      std::int64_t statistics = 0;
      for (const auto& [name, bytes] : saved.statistics) {
        statistics += bytes;
      }
      CHECK(cost.saved_statistic_bytes == statistics);
    }
  }
}
