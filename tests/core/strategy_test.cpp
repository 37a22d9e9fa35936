#include "core/strategy.h"

#include "core/limits.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::string problems_of(const StrategySpec& strategy) {
  Problems problems;
  validate(strategy, problems);
  return problems.one_line();
}

StrategySpec data(DataKind kind, std::int64_t degree = 8) {
  StrategySpec strategy;
  strategy.data.kind = kind;
  strategy.data.degree = degree;
  return strategy;
}

bool refused(const StrategySpec& strategy, const char* place) {
  return problems_of(strategy).find(std::string(place) + ": ") == 0;
}

}  // namespace

TEST_CASE("A strategy made of defaults is one rank and valid") {
  CHECK(problems_of(StrategySpec{}) == "");
  CHECK(StrategySpec{}.world_size() == 1);
}

TEST_CASE("World size is the product of the degrees, and saturates") {
  StrategySpec s = data(DataKind::kDdp, 3);
  s.tensor.degree = 5;
  s.pipeline.degree = 7;
  CHECK(s.world_size() == 105);
  s.tensor.degree = s.pipeline.degree = s.data.degree = kSaturated;
  CHECK(s.world_size() == kSaturated);
  CHECK_FALSE(problems_of(s).empty());
}

TEST_CASE("Options of ddp are refused elsewhere") {
  for (const DataKind kind :
       {DataKind::kDp, DataKind::kZero1, DataKind::kZero2, DataKind::kZero3, DataKind::kFsdp}) {
    StrategySpec s = data(kind);
    s.data.find_unused_parameters = true;
    CHECK(refused(s, "strategy.data.find_unused_parameters"));
    s = data(kind);
    s.data.static_graph = true;
    CHECK(refused(s, "strategy.data.static_graph"));
    s = data(kind);
    s.data.gradient_as_bucket_view = true;
    CHECK(refused(s, "strategy.data.gradient_as_bucket_view"));
    s = data(kind);
    s.data.ideal = true;
    CHECK(refused(s, "strategy.data.ideal"));
  }
  StrategySpec zero = data(DataKind::kZero1);  // ZeroRedundancyOptimizer sits on top of DDP
  zero.data.flavour = ZeroFlavour::kZeroRedundancyOptimizer;
  zero.data.gradient_as_bucket_view = true;
  CHECK(problems_of(zero) == "");
}

TEST_CASE("find_unused_parameters and static_graph exclude each other") {
  StrategySpec s = data(DataKind::kDdp);
  s.data.find_unused_parameters = true;
  CHECK(problems_of(s) == "");
  s.data.static_graph = true;
  CHECK(refused(s, "strategy.data.static_graph"));
}

TEST_CASE("Bucket sizes belong to strategies that reduce by bucket") {
  StrategySpec s = data(DataKind::kZero2);
  s.data.bucket_mib = 50;
  CHECK(problems_of(s) == "");
  s.data.kind = DataKind::kFsdp;
  CHECK(refused(s, "strategy.data.bucket_mib"));
  s.data.kind = DataKind::kDdp;
  s.data.bucket_mib = 0;
  CHECK(refused(s, "strategy.data.bucket_mib"));
}

TEST_CASE("Each flavour exists for the stages that its project has") {
  struct Row {
    ZeroFlavour flavour;
    bool ddp, zero1, zero2, zero3;
  };
  const Row rows[] = {{ZeroFlavour::kPaper, true, true, true, true},
                      {ZeroFlavour::kDeepSpeed, false, true, true, true},
                      {ZeroFlavour::kMegatron, false, true, false, false},
                      {ZeroFlavour::kZeroRedundancyOptimizer, false, true, false, false}};
  for (const Row& row : rows) {
    const std::pair<DataKind, bool> expected[] = {{DataKind::kDdp, row.ddp},
                                                  {DataKind::kZero1, row.zero1},
                                                  {DataKind::kZero2, row.zero2},
                                                  {DataKind::kZero3, row.zero3}};
    for (const auto& [kind, legal] : expected) {
      StrategySpec s = data(kind);
      s.data.flavour = row.flavour;
      CHECK(problems_of(s).empty() == legal);
    }
  }
}

TEST_CASE("hsdp has at least two replicas of at least two shards") {
  StrategySpec s = data(DataKind::kHsdp, 8);
  for (std::int64_t replicate = -1; replicate <= 9; ++replicate) {
    s.data.replicate = replicate;
    const bool legal = replicate == 2 || replicate == 4;
    INFO("replicate " << replicate);
    CHECK(problems_of(s).empty() == legal);
  }
  s = data(DataKind::kFsdp, 8);
  s.data.replicate = 2;
  CHECK(refused(s, "strategy.data.replicate"));
}

TEST_CASE("A reshard group is a non-trivial divisor of the shards") {
  StrategySpec s = data(DataKind::kFsdp, 8);
  s.data.reshard = Reshard::kGroup;
  for (std::int64_t group = -1; group <= 9; ++group) {
    s.data.reshard_group = group;
    const bool legal = group == 2 || group == 4;
    INFO("group " << group);
    CHECK(problems_of(s).empty() == legal);
  }
  s.data.kind = DataKind::kHsdp;  // 8 ranks as 2 replicas of 4 shards
  s.data.replicate = 2;
  s.data.reshard_group = 4;
  CHECK(refused(s, "strategy.data.reshard_group"));
  s.data.reshard_group = 2;
  CHECK(problems_of(s) == "");
  s.data.reshard = Reshard::kOn;
  CHECK(refused(s, "strategy.data.reshard_group"));
}

TEST_CASE("Units are a matter of sharded parameters") {
  StrategySpec s = data(DataKind::kDdp);
  s.data.wrap = WrapPolicy::kRoot;
  CHECK(refused(s, "strategy.data.wrap"));
  s.data.kind = DataKind::kZero3;
  CHECK(problems_of(s) == "");
  s.data.reshard = Reshard::kOff;
  CHECK(refused(s, "strategy.data.reshard"));
  s.data.kind = DataKind::kFsdp;
  CHECK(problems_of(s) == "");
}

TEST_CASE("Sequence parallel needs tensor parallel, kept gathers need sequence parallel") {
  StrategySpec s;
  s.tensor.sequence_parallel = true;
  CHECK(refused(s, "strategy.tensor.sequence_parallel"));
  s.tensor.degree = 2;
  s.tensor.save_gathered_input = true;
  CHECK(problems_of(s) == "");
  s.tensor.sequence_parallel = false;
  CHECK(refused(s, "strategy.tensor.save_gathered_input"));
}

TEST_CASE("More than a million ranks and more than 16384 stages are refused") {
  StrategySpec s = data(DataKind::kDdp, kMaxWorldSize);
  CHECK(problems_of(s) == "");
  s.tensor.degree = 2;
  CHECK(refused(s, "strategy"));
  s = StrategySpec{};
  s.pipeline.degree = 1024;
  s.pipeline.chunks = 17;
  CHECK(refused(s, "strategy.pipeline.chunks"));
}
