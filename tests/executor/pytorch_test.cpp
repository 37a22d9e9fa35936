// Tiny GPT-2 and Llama forms compute what PyTorch computes from the same parameters and tokens:
// logits, losses, gradients (as the change that a step of SGD at rate 1 makes), and parameters
// after three clipped steps of AdamW. The fixtures say which PyTorch made them.
#include <algorithm>
#include <cmath>

#include "core/planner/planner.h"
#include "tests/executor/fixtures/tensor_file.h"
#include "tests/support/catch.h"
#include "tests/support/real_run.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

constexpr std::int64_t kSamples = 4;  ///< of a step, over all ranks
constexpr std::int64_t kSteps = 3;

double value_at(const exec::Operand& from, std::int64_t i) {
  return from.dtype == DType::kFp64 ? from.as<double>()[i]
                                    : static_cast<double>(from.as<float>()[i]);
}

/// Parameters and tokens of a fixture. Evaluation reads the first step's samples.
class FixtureHost final : public test::CounterHost {
 public:
  FixtureHost(const Scenario& scenario, const Plan& plan, const test::Tensors& fixture)
      : CounterHost(scenario, plan),
        rate_(scenario.training.learning_rate),
        graph_(*plan.graph),
        fixture_(fixture),
        predicted_(fixture.at("fp64/logits").size()) {}

  void load(const exec::BatchRequest& request) override {
    const bool evaluates = request.place.section == SectionKind::kEvaluate;
    const std::int64_t iteration = evaluates ? 0 : request.place.iteration;
    const std::int64_t sample =
        iteration * kSamples + request.place.data_coordinate * request.samples;
    const auto copy = [&](const char* name, const exec::Operand* to) {
      const auto from = fixture_.at(name).begin() + sample * request.seq;
      for (std::int64_t i = 0; to != nullptr && i < to->elements; ++i) {
        to->as<std::int64_t>()[i] = static_cast<std::int64_t>(from[i]);
      }
    };
    copy("tokens", request.inputs);
    copy("labels", request.labels);
  }

  double learning_rate(std::int64_t) const override { return rate_; }

  /// Ranks write side by side: each has samples of its own.
  void logits(const exec::RunPlace& place, const exec::Operand& logits) override {
    for (std::int64_t i = 0; i < logits.elements; ++i) {
      predicted_.at(static_cast<std::size_t>(place.data_coordinate * logits.elements + i)) =
          value_at(logits, i);
    }
  }

  bool first_values(std::int32_t parameter,
                    std::int64_t first,
                    std::int64_t n,
                    double* values) const override {
    const std::vector<double>& from = fixture_.at("initial/" + graph_.parameter_name(parameter));
    std::copy_n(from.begin() + first, n, values);
    return true;
  }

  const std::vector<double>& predicted() const { return predicted_; }

 private:
  double rate_;
  const ModelGraph& graph_;
  const test::Tensors& fixture_;
  std::vector<double> predicted_;
};

struct Run {
  test::RunResult result;
  std::vector<double> logits;  ///< before the first step
};

Run run(const Scenario& scenario, const test::Tensors& fixture, std::int64_t steps) {
  const Plan plan = make_plan(scenario, {.evaluate = true, .save = true});
  FixtureHost host(scenario, plan, fixture);
  exec::JobOptions options;
  options.device.poison = true;
  exec::Job job(plan, scenario.training, host, options);
  job.run(*plan.find(SectionKind::kInit), 0);
  job.run(*plan.find(SectionKind::kEvaluate), 0);
  for (std::int64_t i = 0; i < steps; ++i) {
    job.run(plan.step(static_cast<int>(i)), i);
  }
  job.run(*plan.find(SectionKind::kSave), steps);
  return {host.result(), host.predicted()};
}

/// max|a - b| / max(1, max|b|)
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  double scale = 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::abs(a[i] - b[i]) <= largest ? largest : std::abs(a[i] - b[i]);
    scale = std::max(scale, std::abs(b[i]));
  }
  return largest / scale;
}

// ---- the fixtures' models and training (make_pytorch_fixtures.py) ------------------------------

Scenario gpt2() {
  Scenario scenario = test::tiny_gpt();
  scenario.model.max_position = 8;
  return scenario;
}

Scenario llama() {
  Scenario scenario = test::tiny_llama();
  scenario.model.max_position = 8;
  scenario.model.heads = 6;
  return scenario;
}

Scenario with_sgd(Scenario scenario) {
  scenario.training.optimizer = OptimizerKind::kSgd;
  scenario.training.learning_rate = 1;
  scenario.training.weight_decay = 0;
  scenario.training.clip_norm = 0;
  return scenario;
}

Scenario with_adamw(Scenario scenario) {
  scenario.training.optimizer = OptimizerKind::kAdamW;
  scenario.training.learning_rate = 1e-2;
  scenario.training.weight_decay = 0.1;
  scenario.training.beta1 = 0.9;
  scenario.training.beta2 = 0.95;
  scenario.training.epsilon = 1e-4;
  scenario.training.clip_norm = 1;
  return scenario;
}

// ---- comparisons -------------------------------------------------------------------------------

struct Expected {
  const test::Tensors& fixture;
  std::string prefix;  ///< "fp32/" or "fp64/"
  double tolerance;

  const std::vector<double>& of(const std::string& name) const { return fixture.at(prefix + name); }
};

/// Logits where a rank has the whole vocabulary, and the gradient of every parameter.
void check_first_step(const Scenario& scenario, const Expected& expected) {
  const Run sgd = run(with_sgd(scenario), expected.fixture, 1);
  if (scenario.strategy.tensor.degree == 1) {
    CHECK(apart(sgd.logits, expected.of("logits")) <= expected.tolerance);
  }
  REQUIRE_FALSE(sgd.result.parameters.empty());
  for (const auto& [name, after] : sgd.result.parameters) {
    INFO(name);
    const std::vector<double>& before = expected.fixture.at("initial/" + name);
    std::vector<double> gradient(before.size());
    std::transform(
        before.begin(), before.end(), after.begin(), gradient.begin(), std::minus<double>());
    CHECK(apart(gradient, expected.of("gradient/" + name)) <= expected.tolerance);
  }
}

void check_training(const Scenario& scenario, const Expected& expected) {
  const Run adamw = run(with_adamw(scenario), expected.fixture, kSteps);
  CHECK(apart(adamw.result.losses, expected.of("losses")) <= expected.tolerance);
  for (const auto& [name, after] : adamw.result.parameters) {
    INFO(name);
    CHECK(apart(after, expected.of("adamw/" + name)) <= expected.tolerance);
  }
}

template <typename Share>
void check_against_pytorch(const std::string& name, const Scenario& model, Share&& share) {
  const test::Tensors fixture = test::read_tensors(name);
  for (const bool twice : {false, true}) {
    Scenario scenario = model;
    share(scenario.strategy);
    scenario.training.micro_batch = kSamples / scenario.strategy.data.degree;
    scenario.training.precision = twice ? Precision::kFp64 : Precision::kFp32;
    scenario = resolved(scenario);
    require_valid(scenario);
    INFO(name << (twice ? " fp64" : " fp32"));
    const Expected expected{fixture, twice ? "fp64/" : "fp32/", twice ? 1e-10 : 1e-5};
    check_first_step(scenario, expected);
    check_training(scenario, expected);
  }
}

template <typename Share>
void check_both(Share&& share) {
  check_against_pytorch("gpt2", gpt2(), share);
  check_against_pytorch("llama", llama(), share);
}

}  // namespace

TEST_CASE("One rank computes what PyTorch computes", "[pytorch]") {
  check_both([](StrategySpec&) {});
}

TEST_CASE("Fully sharded ranks compute what PyTorch computes on one", "[pytorch]") {
  check_both([](StrategySpec& strategy) {
    strategy.data.kind = DataKind::kFsdp;
    strategy.data.degree = 2;
  });
}

TEST_CASE("Sequence-parallel ranks compute what PyTorch computes on one", "[pytorch]") {
  check_both([](StrategySpec& strategy) {
    strategy.tensor.degree = 2;
    strategy.tensor.sequence_parallel = true;
  });
}

}  // namespace lockstep
