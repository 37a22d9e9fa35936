#include "simulator/search.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"
#include "core/legality.h"
#include "core/memory_report.h"
#include "core/planner/planner.h"
#include "core/planner/summarizer.h"
#include "simulator/estimate.h"
#include "simulator/parallel.h"
#include "simulator/simulate.h"

namespace lockstep::sim {
namespace {

/// All candidates, in the order of the space.
class Enumeration {
 public:
  Enumeration(const Scenario& base, const SearchSpace& space) : base_(base), space_(space) {}

  std::vector<Candidate> list() {
    for (const std::int64_t tensor : degrees(space_.tensor, SearchSpace::kMostTensor)) {
      for (const std::int64_t pipeline : degrees(space_.pipeline, SearchSpace::kMostPipeline)) {
        if (tensor * pipeline > 0 && space_.devices % (tensor * pipeline) == 0) {
          model_parallel(tensor, pipeline);
        }
      }
    }
    return std::move(list_);
  }

 private:
  std::vector<std::int64_t> degrees(const std::vector<std::int64_t>& given,
                                    std::int64_t most) const {
    std::vector<std::int64_t> found = given;
    for (std::int64_t degree = 1; given.empty() && degree <= most; ++degree) {
      if (space_.devices % degree == 0) {
        found.push_back(degree);
      }
    }
    return found;
  }

  void model_parallel(std::int64_t tensor, std::int64_t pipeline) {
    StrategySpec strategy;
    strategy.tensor.degree = tensor;
    strategy.pipeline.degree = pipeline;
    strategy.data.degree = space_.devices / (tensor * pipeline);
    for (const bool sequence_parallel : {true, false}) {
      strategy.tensor.sequence_parallel = sequence_parallel && tensor > 1;
      if (sequence_parallel && tensor == 1) {
        continue;
      }
      for (const auto& [schedule, chunks] : space_.schedules) {
        strategy.pipeline.schedule = schedule;
        strategy.pipeline.chunks = chunks;
        data_parallel(strategy);
        if (pipeline == 1) {
          break;  // no schedule to choose
        }
      }
    }
  }

  void data_parallel(StrategySpec strategy) {
    for (const DataKind kind : space_.data) {
      strategy.data.kind = kind;
      strategy.data.replicate = 1;
      if (kind == DataKind::kZero1 && strategy.tensor.degree * strategy.pipeline.degree > 1) {
        strategy.data.flavour = ZeroFlavour::kMegatron;
      } else {
        strategy.data.flavour = ZeroFlavour::kPaper;
      }
      if (kind == DataKind::kHsdp) {
        // Shards inside a node, replicas across.
        const std::int64_t per_node =
            std::max<std::int64_t>(1, base_.cluster.devices_per_node / strategy.tensor.degree);
        strategy.data.replicate = std::max<std::int64_t>(1, strategy.data.degree / per_node);
        if (strategy.data.replicate == 1 || strategy.data.replicate == strategy.data.degree) {
          continue;  // that is fsdp, or ddp
        }
      }
      training(strategy);
      if (strategy.data.degree == 1) {
        break;  // nothing to shard: all kinds are alike
      }
    }
  }

  void training(const StrategySpec& strategy) {
    for (const std::int64_t micro_batch : space_.micro_batch) {
      for (const Recompute recompute : space_.recompute) {
        if (recompute == Recompute::kSelective &&
            base_.training.attention == AttentionKind::kFlash) {
          continue;  // a flash kernel recomputes its scores anyway: the same as none
        }
        Candidate candidate;
        candidate.strategy = strategy;
        candidate.micro_batch = micro_batch;
        candidate.recompute = recompute;
        const std::int64_t pass = micro_batch * strategy.data.degree;
        candidate.accumulate = base_.training.global_batch / pass;
        if (candidate.accumulate * pass != base_.training.global_batch) {
          candidate.accumulate = 0;  // does not divide
        }
        list_.push_back(candidate);
      }
    }
  }

  const Scenario& base_;
  const SearchSpace& space_;
  std::vector<Candidate> list_;
};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}

/// A reason with N for its numbers, so that equal reasons count together; names such as zero1 stay.
std::string without_numbers(const std::string& reason) {
  std::string text;
  for (std::size_t first = 0; first < reason.size();) {
    std::size_t last = first;
    while (last < reason.size() && is_word(reason[last])) {
      ++last;
    }
    if (last == first) {
      text += reason[first++];
      continue;
    }
    const std::string word = reason.substr(first, last - first);
    const bool number = word.find_first_not_of("0123456789") == std::string::npos;
    text += number ? "N" : word;
    first = last;
  }
  return text;
}

/// Fills in the candidate; the reason why it cannot be, or "". `shared` is the cluster as each rank
/// finds it.
std::string evaluate(Summarizer& summarizer,
                     const Scenario& base,
                     const ClusterSpec& shared,
                     Candidate& candidate) {
  if (candidate.accumulate == 0) {
    return "the global batch is no multiple of dp x micro-batch";
  }
  const Scenario scenario = candidate.scenario(base);
  const Problems problems = validate(scenario);
  if (!problems.empty()) {
    const Problem& first = problems.list().front();
    const LegalityRule* const rule = first_broken_rule(scenario);
    const bool of_rule = rule != nullptr && first.message.rfind(rule->reason, 0) == 0;
    return of_rule ? std::string(rule->place) + ": " + rule->reason
                   : without_numbers(first.place + ": " + first.message);
  }
  try {
    const PlanSummary summary = summarizer.summarize(scenario);
    candidate.peak_bytes = counted_peak_bytes(scenario, summary);
    if (candidate.peak_bytes > scenario.cluster.device.memory_bytes) {
      return "does not fit into the device's memory";
    }
    candidate.estimated_s = Estimator(shared, summary.tf32).estimate(summary).step_s;
  } catch (const NotSupportedError& error) {
    return without_numbers(error.what());
  }
  return "";
}

double simulated(const Scenario& scenario) {
  const Plan plan = make_plan(scenario, {false, false});
  return static_cast<double>(simulate(plan, scenario.cluster).trace.steps.front().end) * 1e-9;
}

double median_difference(const std::vector<Candidate>& best) {
  std::vector<double> differences;
  differences.reserve(best.size());
  for (const Candidate& each : best) {
    differences.push_back(std::abs(each.estimated_s - *each.simulated_s) / *each.simulated_s);
  }
  std::sort(differences.begin(), differences.end());
  return differences.empty() ? 0 : differences[differences.size() / 2];
}

}  // namespace

Scenario Candidate::scenario(const Scenario& base) const {
  Scenario scenario = base;
  scenario.strategy = strategy;
  scenario.training.micro_batch = micro_batch;
  scenario.training.accumulate = accumulate;
  scenario.training.recompute = recompute;
  return resolved(std::move(scenario));
}

SearchResult search(const Scenario& base, const SearchSpace& space, const SearchOptions& options) {
  if (base.training.global_batch <= 0) {
    throw UsageError("search", "no global batch: give --global-batch");
  }
  std::vector<Candidate> all = Enumeration(base, space).list();
  std::vector<std::string> reasons(all.size());
  const ClusterSpec shared = as_shared(base.cluster, space.devices);
  std::vector<Summarizer> summarizers(static_cast<std::size_t>(options.threads));
  for_all(all.size(), options.threads, [&](int thread, std::size_t i) {
    reasons[i] = evaluate(summarizers[static_cast<std::size_t>(thread)], base, shared, all[i]);
  });
  SearchResult result;
  result.candidates = static_cast<std::int64_t>(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (reasons[i].empty()) {
      result.best.push_back(all[i]);
    } else {
      ++result.rejected[reasons[i]];
    }
  }
  result.feasible = static_cast<std::int64_t>(result.best.size());
  std::stable_sort(
      result.best.begin(), result.best.end(), [](const Candidate& a, const Candidate& b) {
        return a.estimated_s < b.estimated_s;
      });
  result.best.resize(std::min(result.best.size(), static_cast<std::size_t>(options.simulated)));
  for_all(result.best.size(), options.threads, [&](int, std::size_t i) {
    result.best[i].simulated_s = simulated(result.best[i].scenario(base));
  });
  std::stable_sort(
      result.best.begin(), result.best.end(), [](const Candidate& a, const Candidate& b) {
        return *a.simulated_s < *b.simulated_s;
      });
  result.median_difference = median_difference(result.best);
  return result;
}

}  // namespace lockstep::sim
