// Training steps of DESIGN.md's shape (GPT-2 form, 6 layers, hidden 384, 6 heads, sequence 256,
// micro-batch 8, fp32, AdamW, tied head, no clipping, no dropout) through the library's Trainer:
// tokens/s, beside the limit that this machine's best matrix product sets, and where the time goes.
//
//     train_bench                       vocabulary 256 and 50,304, with 1 and 2 ranks
//     train_bench 50304 2 [STEPS]       one of them; the last line is for programs to read:
//                                       RESULT tokens/s, tokens per second of CPU time
//
// The limit: the FLOPs that have to be done (matrix products; attention forward and backward once,
// below the diagonal) at the best rate that a product of the step's shapes reaches here, for two
// ranks times the control. Tokens per CPU second say what an undisturbed run would reach when
// others use the machine. Figures mean something when "others" is near 0.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/plan.h"
#include "core/work_cost.h"
#include "executor/trainer.h"
#include "kernels/cpu/gemm.h"
#include "tests/benchmark/machine.h"

namespace lockstep::bench {
namespace {

constexpr std::int64_t kSeq = 256;
constexpr std::int64_t kMicroBatch = 8;
constexpr std::int64_t kHidden = 384;
constexpr int kWarmUp = 2;

Scenario scenario_of(std::int64_t vocabulary, std::int64_t ranks) {
  Scenario scenario;
  scenario.model.layers = 6;
  scenario.model.hidden = kHidden;
  scenario.model.heads = 6;
  scenario.model.kv_heads = 6;
  scenario.model.head_dim = 64;
  scenario.model.intermediate = 4 * kHidden;
  scenario.model.vocab = vocabulary;
  scenario.model.max_position = kSeq;
  scenario.training.micro_batch = kMicroBatch;
  scenario.training.precision = Precision::kFp32;
  scenario.training.clip_norm = 0;
  scenario.strategy.data.degree = ranks;
  scenario = resolved(scenario);
  require_valid(scenario);
  return scenario;
}

/// Tokens without order: what they are changes no time but the embedding's.
exec::TokenFile tokens(std::int64_t vocabulary) {
  exec::TokenFile file;
  file.vocabulary = vocabulary;
  std::uint64_t state = 1;
  for (std::int64_t i = 0; i < 400 * kSeq; ++i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    file.tokens.push_back(
        static_cast<std::uint16_t>((state >> 33U) % static_cast<std::uint64_t>(vocabulary)));
  }
  return file;
}

bool is_attention(Work work) {
  return work == Work::kFlashAttention || work == Work::kFlashAttentionGrad;
}

/// FLOPs that cannot be saved: the causal half, and backward's four products without flash's fifth.
double necessary_flops(Work work, const WorkCost& cost) {
  if (work == Work::kFlashAttentionGrad) {
    return cost.flops * 4 / 5 / 2;
  }
  return is_attention(work) ? cost.flops / 2 : cost.flops;
}

/// What a rank's steps spend in each kind of operation.
struct Profile {
  struct Row {
    double seconds = 0;
    double flops = 0;
    int count = 0;
  };
  std::map<std::string, Row> rows;
  double compute = 0;  ///< seconds on the compute stream
  int steps = 0;

  void add(const Plan& plan, const TraceStep& step, int rank) {
    const TraceTrack& track = step.track(rank);
    const Program& program = plan.sections[static_cast<std::size_t>(step.section)]
                                 .programs[static_cast<std::size_t>(track.class_index)];
    ++steps;
    for (const Span& span : track.spans) {
      const Operation& op = program.operations[span.operation];
      const double seconds = static_cast<double>(span.ended - span.started) * 1e-9;
      const bool communicates = op.communicator != kNoCommunicator;
      Row& row = rows[communicates ? std::string(name_of(op.collective)) + " (beside compute)"
                                   : std::string(name_of(op.work))];
      row.seconds += seconds;
      row.flops +=
          necessary_flops(op.work, work_cost(op.work, plan.shapes[op.shape], DType::kFp32));
      ++row.count;
      compute += communicates ? 0 : seconds;
    }
  }

  double flops() const {
    double sum = 0;
    for (const auto& [name, row] : rows) {
      sum += row.flops;
    }
    return sum / steps;
  }
};

void print(const Profile& profile, double step_seconds) {
  std::vector<std::pair<std::string, Profile::Row>> rows(profile.rows.begin(), profile.rows.end());
  std::sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.seconds > b.second.seconds;
  });
  const double n = profile.steps;
  fmt::print("  {:32} {:>6} {:>10} {:>7} {:>9}\n", "work", "count", "ms", "%", "GFLOP/s");
  for (const auto& [name, row] : rows) {
    const double share = row.seconds / n / step_seconds;
    if (share < 0.0005) {
      continue;
    }
    const std::string rate =
        row.flops > 0 ? fmt::format("{:9.1f}", row.flops / row.seconds * 1e-9) : "";
    fmt::print("  {:32} {:>6} {:>10.2f} {:>7.1f} {}\n",
               name,
               row.count / profile.steps,
               row.seconds / n * 1e3,
               share * 100,
               rate);
  }
  const double rest = step_seconds - profile.compute / n;
  fmt::print("  {:32} {:>6} {:>10.2f} {:>7.1f}\n",
             "between operations, and waits",
             "",
             rest * 1e3,
             rest / step_seconds * 100);
}

struct Machine {
  double best_rate = 0;  ///< FLOP/s of one thread
  double control = 0;
};

ProductShape layer_product() {
  return {kMicroBatch * kSeq, 4 * kHidden, kHidden};
}

/// The best that a product of the step's forms reaches.
double best_rate() {
  double best = 0;
  for (const auto& [n, k] : {std::pair{4 * kHidden, kHidden},
                             std::pair{kHidden, 4 * kHidden},
                             std::pair{3 * kHidden, kHidden},
                             std::pair{std::int64_t{8192}, kHidden}}) {
    best = std::max(best, product_rate({kMicroBatch * kSeq, n, k}, 7));
  }
  return best;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(std::int64_t vocabulary, std::int64_t ranks, std::int64_t steps, Machine machine) {
  const Scenario scenario = scenario_of(vocabulary, ranks);
  exec::TokenData data(tokens(vocabulary), kSeq);
  exec::TrainOptions options;
  options.steps = kWarmUp + steps;
  exec::Trainer trainer(scenario, data, options);
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  Profile profile;
  LoadMeter load;
  LoadMeter step_load;
  double others = 0;
  trainer.run([&](const exec::StepMetrics& metrics) {
    if (metrics.step > kWarmUp) {
      seconds.push_back(metrics.seconds);
      // The last step's time would count the evaluation after it.
      if (!metrics.evaluation_loss.has_value() || cpu_seconds.empty()) {
        cpu_seconds.push_back(step_load.own_seconds());
      }
      others = load.others();
    } else {
      load = LoadMeter();
    }
    step_load = LoadMeter();
    return true;
  });
  profile.add(trainer.plan(), *trainer.last_step(), 0);  // the trainer keeps the last step's spans
  const double tokens_of_step = static_cast<double>(ranks * kMicroBatch * kSeq);
  const double step_seconds = median(seconds);
  const double by_wall = tokens_of_step / step_seconds;
  const double by_cpu = tokens_of_step / median(cpu_seconds) * static_cast<double>(ranks);
  machine.best_rate = std::max(machine.best_rate, best_rate());
  const double flops_per_token = profile.flops() * static_cast<double>(ranks) / tokens_of_step;
  const double limit = machine.best_rate * (ranks == 1 ? 1 : machine.control) / flops_per_token;
  fmt::print(
      "\nvocabulary {}, {} rank{}: {:.0f} tokens/s (best step {:.0f}; per CPU second {:.0f}), "
      "{:.1f} GFLOP/s\n"
      "  limit {:.0f} tokens/s: {:.1f} MFLOP a token at {:.1f} GFLOP/s{}; share {:.0f} % (per CPU "
      "second {:.0f} %); others used {:.0f} % of the machine\n",
      vocabulary,
      ranks,
      ranks == 1 ? "" : "s",
      by_wall,
      tokens_of_step / *std::min_element(seconds.begin(), seconds.end()),
      by_cpu,
      by_wall * flops_per_token * 1e-9,
      limit,
      flops_per_token * 1e-6,
      machine.best_rate * 1e-9,
      ranks == 1 ? "" : fmt::format(" times the control {:.2f}", machine.control),
      by_wall / limit * 100,
      by_cpu / limit * 100,
      others * 100);
  print(profile, step_seconds);
  fmt::print("RESULT {:.1f} {:.1f}\n", by_wall, by_cpu);
}

int run_all(int count, char** arguments) {
  const MachineLock lock;
  wait_until_idle(std::chrono::seconds(count > 1 ? 0 : 60));
  const Machine machine{best_rate(), control(layer_product(), 10)};
  fmt::print(
      "{}; best product {:.1f} GFLOP/s; control: two threads do {:.2f} of one thread's work\n",
      kernels::cpu::float_gemm_library(),
      machine.best_rate * 1e-9,
      machine.control);
  if (count > 2) {
    run(std::atoll(arguments[1]),
        std::atoll(arguments[2]),
        count > 3 ? std::atoll(arguments[3]) : 5,
        machine);
    return 0;
  }
  for (const std::int64_t vocabulary : {256, 50304}) {
    for (const std::int64_t ranks : {1, 2}) {
      run(vocabulary, ranks, vocabulary > 1000 ? 3 : 7, machine);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int count, char** arguments) {
  return lockstep::bench::run_all(count, arguments);
}
