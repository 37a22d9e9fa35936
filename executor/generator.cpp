#include "executor/generator.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/planner/planner.h"
#include "executor/work_call.h"

namespace lockstep::exec {
namespace {

constexpr std::int64_t kLineBreak = 10;

Scenario on_one_rank(Scenario scenario) {
  scenario.strategy = StrategySpec{};
  scenario.training.micro_batch = 1;
  scenario.training.accumulate = 1;
  scenario.training.global_batch = 1;
  scenario.training.dropout = 0;
  scenario.training.recompute = Recompute::kNone;
  scenario.cluster.nodes = 1;
  return resolved(scenario);
}

/// An index drawn by softmax(logits / temperature); the largest for temperature 0.
std::int64_t draw(const std::vector<double>& logits, double temperature, std::mt19937_64& random) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature <= 0) {
    return largest - logits.begin();
  }
  std::vector<double> sums(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    sum += std::exp((logits[i] - *largest) / temperature);
    sums[i] = sum;
  }
  const double at = static_cast<double>(random() >> 11U) * 0x1p-53 * sum;
  const auto found = std::upper_bound(sums.begin(), sums.end(), at);
  return std::min<std::int64_t>(found - sums.begin(), static_cast<std::int64_t>(sums.size()) - 1);
}

}  // namespace

class Generator::PromptHost final : public Host {
 public:
  explicit PromptHost(const Checkpoint& checkpoint) : checkpoint_(&checkpoint) {}

  void load(const BatchRequest& request) override {
    if (request.inputs != nullptr) {
      auto* const to = request.inputs->as<std::int64_t>();
      std::fill(to, to + request.seq, kLineBreak);
      std::copy(context.begin(), context.end(), to);
    }
    if (request.labels != nullptr) {
      std::fill_n(request.labels->as<std::int64_t>(), request.seq, 0);
    }
  }
  void logits(const RunPlace&, const Operand& all) override {
    with_real(all.dtype, [&]<typename T>(T*) {
      const T* row = all.as<T>() + (static_cast<std::int64_t>(context.size()) - 1) * vocabulary;
      next.assign(row, row + vocabulary);
    });
  }
  bool first_values(std::int32_t parameter,
                    std::int64_t first,
                    std::int64_t n,
                    double* values) const override {
    return checkpoint_->read(0, parameter, first, n, values);
  }
  double learning_rate(std::int64_t) const override { return 0; }
  void loss(const RunPlace&, double) override {}
  void shard(const Shard&) override {}
  void commit(const RunPlace&) override {}

  std::vector<std::int64_t> context;
  std::vector<double> next;  ///< logits of the position after the context
  std::int64_t vocabulary = 0;

 private:
  const Checkpoint* checkpoint_;
};

Generator::Generator(const Scenario& scenario, const Checkpoint& checkpoint)
    : scenario_(on_one_rank(scenario)),
      plan_(make_plan(scenario_, {.evaluate = true, .save = false})),
      host_(std::make_unique<PromptHost>(checkpoint)) {
  host_->vocabulary = scenario_.model.vocab;
  job_ = std::make_unique<Job>(plan_, scenario_.training, *host_, JobOptions{});
  job_->run(*plan_.find(SectionKind::kInit), 0);
}

Generator::~Generator() = default;

void Generator::generate(std::vector<std::int64_t> prompt,
                         const GenerateOptions& options,
                         const std::function<bool(std::int64_t)>& on_token) {
  std::mt19937_64 random(options.seed);
  if (prompt.empty()) {
    prompt.push_back(kLineBreak);
  }
  const auto seq = static_cast<std::size_t>(scenario_.training.seq_len);
  for (std::int64_t i = 0; i < options.tokens; ++i) {
    const std::size_t seen = std::min(prompt.size(), seq);
    host_->context.assign(prompt.end() - static_cast<std::ptrdiff_t>(seen), prompt.end());
    job_->run(*plan_.find(SectionKind::kEvaluate), 0);
    const std::int64_t token = draw(host_->next, options.temperature, random);
    prompt.push_back(token);
    if (!on_token(token)) {
      return;
    }
  }
}

}  // namespace lockstep::exec
