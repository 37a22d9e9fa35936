#include "simulator/validate_training.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include <fmt/format.h>

#include "core/error.h"
#include "core/memory_report.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"

namespace lockstep::sim {
namespace {

std::string regime_of(const TrainingRow& row) {
  std::string text = row.sharding;
  if (row.tp.value_or(1) > 1) {
    text += " tp";
  }
  if (row.pp.value_or(1) > 1) {
    text += " pp";
  }
  if (row.recompute == "full" || row.recompute == "selective") {
    text += ", " + row.recompute + " recompute";
  }
  return text;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// What a reading of memory counts.
std::string reading_of(const TrainingRow& row) {
  const std::string_view kind = row.memory_kind;
  if (contains(kind, "after step") || kind.starts_with("memory_allocated")) {
    return "allocated after the step";
  }
  if (contains(kind, "reserved")) {
    return "reserved";
  }
  if (contains(kind, "nvidia-smi")) {
    return "nvidia-smi";
  }
  if (contains(kind, "allocated") || contains(kind, "torch peak")) {
    return "allocated";
  }
  return contains(kind, "active") ? "active" : "kind not stated";
}

/// The predictions of one row, or why there is none.
struct Outcome {
  std::vector<ValidatedRow> rows;
  std::optional<RefusedRow> refused;
};

ValidatedRow prediction(const TrainingRow& row, Metric metric, double predicted, double measured) {
  ValidatedRow result;
  result.id = row.id;
  result.source = row.source;
  result.hardware = row.hardware;
  result.metric = metric;
  result.predicted = predicted;
  result.measured = measured;
  result.error = (predicted - measured) / measured;
  result.regime = regime_of(row);
  return result;
}

void predict_training(const TrainingRow& row,
                      const Scenario& scenario,
                      const Efficiency& efficiency,
                      Outcome& outcome) {
  const double seconds = predicted_step_time(scenario, efficiency);
  if (row.step_time_s) {
    outcome.rows.push_back(prediction(row, Metric::kStepTime, seconds, *row.step_time_s));
  }
  if (row.tokens_per_s_per_gpu) {
    const double tokens = static_cast<double>(samples_per_step(scenario)) *
                          static_cast<double>(scenario.training.seq_len);
    const auto devices = static_cast<double>(scenario.strategy.world_size());
    outcome.rows.push_back(prediction(
        row, Metric::kTokensPerSecond, tokens / seconds / devices, *row.tokens_per_s_per_gpu));
  }
}

[[noreturn]] void refuse_claim(double fraction) {
  throw NotSupportedError(
      "validate",
      fmt::format("its step time claims {:.0f} % of the device's peak", 100 * fraction));
}

Outcome outcome_of(const TrainingRow& row,
                   ValidationTable table,
                   const Machines& machines,
                   const ValidationOptions& options) {
  Outcome outcome;
  const std::string reason = left_out(row, table);
  if (!reason.empty() && !options.all) {
    outcome.refused = {row.id, reason};
    return outcome;
  }
  try {
    const Scenario scenario = scenario_of(row, machines);
    if (const double claimed = claimed_fraction(row, scenario); claimed > 1) {
      refuse_claim(claimed);
    }
    if (table == ValidationTable::kTraining) {
      predict_training(row, scenario, options.efficiency, outcome);
    } else if (row.peak_gib) {
      constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;
      outcome.rows.push_back(prediction(row,
                                        Metric::kPeakMemory,
                                        predicted_peak_bytes(scenario, row) / kGibibyte,
                                        *row.peak_gib));
      outcome.rows.back().regime = reading_of(row);
    }
  } catch (const NotSupportedError& error) {
    outcome.refused = {row.id, reason.empty() ? error.what() : reason};
  }
  for (ValidatedRow& it : outcome.rows) {
    it.left_out = reason;
  }
  if (outcome.rows.empty() && !outcome.refused) {
    outcome.refused = {row.id, reason.empty() ? "nothing to compare with is printed" : reason};
  }
  return outcome;
}

}  // namespace

std::string_view name_of(Metric metric) {
  switch (metric) {
    case Metric::kStepTime:
      return "step_time";
    case Metric::kTokensPerSecond:
      return "tokens_per_s";
    case Metric::kPeakMemory:
      return "peak_memory";
    case Metric::kCollectiveTime:
      return "collective_time";
  }
  return "?";
}

double predicted_step_time(const Scenario& scenario, const Efficiency& efficiency) {
  const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
  const Simulation run =
      simulate(plan, scenario.cluster, ClusterCosts(scenario.cluster, plan.tf32, efficiency), {});
  const TraceStep& step = run.trace.steps.back();
  return static_cast<double>(step.end - step.begin) * 1e-9;
}

namespace {

/// torch.distributed's default group of all ranks, over which frameworks synchronize their start.
std::int64_t default_group_bytes(const RankMemory& rank) {
  for (const MemoryTerm& term : rank.margins) {
    if (term.name.starts_with("default process group")) {
      return term.bytes;
    }
  }
  return 0;
}

/// Margins of the allocator: rounding of blocks and what its cache keeps.
std::int64_t cached_bytes(const RankMemory& rank) {
  std::int64_t bytes = 0;
  for (const MemoryTerm& term : rank.margins) {
    const bool allocator =
        term.name.starts_with("allocator rounding") || term.name == "fragmentation";
    bytes += allocator ? term.bytes : 0;
  }
  return bytes;
}

/// The rank that was read, or the fullest.
const RankMemory& rank_of(const MemoryReport& report, const TrainingRow& row) {
  const RankMemory* chosen = &report.worst();
  if (contains(row.rank_or_stage, "last")) {
    for (const RankMemory& it : report.ranks) {
      chosen = it.rank > chosen->rank ? &it : chosen;
    }
  } else if (row.rank_or_stage == "rank 0") {
    for (const RankMemory& it : report.ranks) {
      chosen = it.rank == 0 ? &it : chosen;
    }
  }
  return *chosen;
}

/// Bytes that live on after the step, when nothing is computed.
std::int64_t bytes_after_step(const Scenario& scenario, int class_index) {
  const PlanSummary summary = summarize_plan(scenario);
  return total(summary.classes[static_cast<std::size_t>(class_index)].at_end);
}

}  // namespace

double predicted_peak_bytes(const Scenario& scenario, const TrainingRow& row) {
  const MemoryReport report = memory_report(scenario, {.rows = false});
  const RankMemory& rank = rank_of(report, row);
  const std::string reading = reading_of(row);
  std::int64_t bytes = rank.tensor_bytes();
  if (reading == "allocated after the step") {
    bytes = bytes_after_step(scenario, rank.class_index);
  } else if (reading == "nvidia-smi" || reading == "kind not stated") {
    bytes += cached_bytes(rank) + rank.non_tensor_bytes() + default_group_bytes(rank);
  } else if (reading == "reserved") {
    bytes += cached_bytes(rank);
  }
  return static_cast<double>(bytes);
}

ValidationReport validate_rows(const std::vector<TrainingRow>& rows,
                               ValidationTable table,
                               const Machines& machines,
                               const ValidationOptions& options) {
  std::vector<Outcome> outcomes(rows.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < rows.size(); i = next++) {
      outcomes[i] = outcome_of(rows[i], table, machines, options);
      if (options.progress) {
        options.progress(++done, rows.size());
      }
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < options.threads; ++i) {
    helpers.emplace_back(work);
  }
  work();
  for (std::thread& helper : helpers) {
    helper.join();
  }
  ValidationReport report;
  for (Outcome& outcome : outcomes) {
    for (ValidatedRow& row : outcome.rows) {
      report.rows.push_back(std::move(row));
    }
    if (outcome.refused) {
      report.refused.push_back(std::move(*outcome.refused));
    }
  }
  return report;
}

}  // namespace lockstep::sim
