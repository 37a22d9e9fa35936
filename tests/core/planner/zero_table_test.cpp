// Model states of ZeRO (Rajbhandari et al. 2020, figure 1): 7.5 billion parameters on 64 ranks with
// Adam in mixed precision take 120, 31.4, 16.6 and 1.9 GB; and the rows of other precisions and
// frameworks, all in closed form, padding named.
#include <vector>

#include "core/names.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/model_state.h"

namespace lockstep {
namespace {

using test::ModelState;

// 36 layers of 12 h^2 + 13 h, 60,088 words, 1,024 positions, final norm; h = 4,096.
constexpr std::int64_t kHidden = 4096;
constexpr std::int64_t kParameters =
    36 * (12 * kHidden * kHidden + 13 * kHidden) + (60'088 + 1'024 + 2) * kHidden;
static_assert(kParameters == 7'499'997'184);

Scenario gpt_7500m(DataKind kind, std::int64_t ranks) {
  Scenario scenario;
  scenario.model.layers = 36;
  scenario.model.hidden = kHidden;
  scenario.model.heads = 32;
  scenario.model.kv_heads = 32;
  scenario.model.head_dim = 128;
  scenario.model.intermediate = 4 * kHidden;
  scenario.model.vocab = 60'088;
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = ranks;
  scenario.training.clip_norm = 0;
  return scenario;
}

ModelState state_of(const Scenario& scenario) {
  const Scenario complete = resolved(scenario);
  require_valid(complete);
  return test::model_state(make_plan(complete), 0);
}

double gigabytes(std::int64_t bytes) {
  return static_cast<double>(bytes) / 1e9;
}

}  // namespace

TEST_CASE("ZeRO's table: 120, 31.4, 16.6 and 1.9 GB for 7.5 B parameters on 64 ranks") {
  struct Row {
    DataKind kind;
    std::int64_t bytes;
    double published;  // GB
  };
  constexpr std::int64_t kShard = kParameters / 64;
  static_assert(kShard * 64 == kParameters);
  const Row rows[] = {
      {DataKind::kDdp, (2 + 2 + 12) * kParameters, 120},
      {DataKind::kZero1, (2 + 2) * kParameters + 12 * kShard, 31.4},
      {DataKind::kZero2, 2 * kParameters + (2 + 12) * kShard, 16.6},
      {DataKind::kZero3, (2 + 2 + 12) * kShard, 1.9},
  };
  for (const Row& row : rows) {
    INFO(name_of(row.kind));
    const ModelState state = state_of(gpt_7500m(row.kind, 64));
    CHECK(state.bytes == row.bytes);
    CHECK(state.padding == 0);  // every dimension is a multiple of 64
    CHECK(gigabytes(state.bytes) == Approx(row.published).margin(0.05));
  }
}

TEST_CASE("ZeRO's table with 60 ranks, which divide nothing: the difference is padding, by name") {
  // One bucket: the whole is padded to a multiple of 60.
  const std::int64_t whole = (kParameters + 59) / 60 * 60;
  Scenario zero1 = gpt_7500m(DataKind::kZero1, 60);
  zero1.strategy.data.bucket_mib = 1e6;
  const ModelState stage1 = state_of(zero1);
  CHECK(stage1.bytes == 4 * whole + 12 * (whole / 60));
  // Rank 0 lies before the padding; it sees only that of what it holds as a whole.
  CHECK(stage1.padding == 4 * (whole - kParameters));
  // Every parameter by itself.
  const auto padded = [](std::int64_t elements) { return (elements + 59) / 60 * 60; };
  const std::int64_t h = kHidden;
  const std::int64_t block = padded(3 * h * h) + padded(3 * h) + padded(h * h) + padded(h) +
                             2 * padded(4 * h * h) + padded(4 * h) + padded(h) + 4 * padded(h);
  const std::int64_t each = 36 * block + padded(60'088 * h) + padded(1'024 * h) + 2 * padded(h);
  const ModelState stage3 = state_of(gpt_7500m(DataKind::kZero3, 60));
  CHECK(stage3.bytes == 16 * (each / 60));
}

TEST_CASE("bytes per parameter of the other rows: fp32, fp32 main gradients, sharded fp32") {
  struct Row {
    const char* name;
    DataKind kind;
    ZeroFlavour flavour;
    Precision precision;
    std::int64_t whole;    // bytes of every parameter on every rank
    std::int64_t sharded;  // bytes of every parameter over all ranks
  };
  // FSDP cuts rows: rank 0 has 939 of 60,088 words, an eighth of a row more than its share.
  constexpr std::int64_t kMoreRows = (939 * 64 - 60'088) * kHidden / 64;
  // Megatron-LM: bf16 parameters, fp32 main gradients. FSDP: fp32 shards and gradients, Adam.
  const Row rows[] = {
      {"ddp fp32", DataKind::kDdp, ZeroFlavour::kPaper, Precision::kFp32, 16, 0},
      {"zero1 fp32", DataKind::kZero1, ZeroFlavour::kPaper, Precision::kFp32, 8, 8},
      {"zero2 fp32", DataKind::kZero2, ZeroFlavour::kPaper, Precision::kFp32, 4, 12},
      {"zero3 fp32", DataKind::kZero3, ZeroFlavour::kPaper, Precision::kFp32, 0, 16},
      {"megatron", DataKind::kZero1, ZeroFlavour::kMegatron, Precision::kBf16, 6, 12},
      {"fsdp", DataKind::kFsdp, ZeroFlavour::kPaper, Precision::kBf16, 0, 16},
      {"ddp autocast", DataKind::kDdp, ZeroFlavour::kPaper, Precision::kAutocast, 16, 0},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Scenario scenario = gpt_7500m(row.kind, 64);
    scenario.strategy.data.flavour = row.flavour;
    scenario.training.precision = row.precision;
    const ModelState state = state_of(scenario);
    const std::int64_t more = row.kind == DataKind::kFsdp ? kMoreRows : 0;
    CHECK(state.bytes - state.padding ==
          row.whole * kParameters + row.sharded * (kParameters / 64 + more));
    CHECK(state.padding <= (row.flavour == ZeroFlavour::kMegatron ? 128 * 18 * 300 : 0));
  }
}

}  // namespace lockstep
