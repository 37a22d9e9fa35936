// Search: every layout of a model on some devices, priced in closed form; the best are simulated.
//
//   const SearchResult result = sim::search(scenario, SearchSpace{.devices = 1024});
//
// A layout is a tensor-parallel degree with or without sequence parallelism, a pipeline degree with
// its schedule and chunks, a data-parallel kind on what is left, a micro-batch and what is
// recomputed. The global batch stays as the scenario has it. Deterministic: the result does not
// depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/scenario.h"

namespace lockstep::sim {

/// What is tried.
struct SearchSpace {
  static constexpr std::int64_t kMostTensor = 8;
  static constexpr std::int64_t kMostPipeline = 32;

  std::int64_t devices = 1;
  /// Empty: every degree up to the most that divides the devices.
  std::vector<std::int64_t> tensor = {};
  std::vector<std::int64_t> pipeline = {};
  std::vector<DataKind> data = {DataKind::kDdp,
                                DataKind::kZero1,
                                DataKind::kZero2,
                                DataKind::kZero3,
                                DataKind::kFsdp,
                                DataKind::kHsdp};
  std::vector<std::int64_t> micro_batch = {1, 2, 4, 8};
  std::vector<Recompute> recompute = {Recompute::kNone, Recompute::kSelective, Recompute::kFull};
  /// Schedules of pipelines, with their chunks per rank.
  std::vector<std::pair<ScheduleKind, std::int64_t>> schedules = {{ScheduleKind::k1F1B, 1},
                                                                  {ScheduleKind::kInterleaved, 2},
                                                                  {ScheduleKind::kInterleaved, 4},
                                                                  {ScheduleKind::kZbH1, 1}};
};

struct Candidate {
  StrategySpec strategy;
  std::int64_t micro_batch = 1;
  std::int64_t accumulate = 1;
  Recompute recompute = Recompute::kNone;
  double estimated_s = 0;
  std::int64_t peak_bytes = 0;
  std::optional<double> simulated_s;  ///< of the best

  /// What the candidate makes of `base`; resolved.
  Scenario scenario(const Scenario& base) const;
};

struct SearchResult {
  std::int64_t candidates = 0;                   ///< layouts looked at
  std::int64_t feasible = 0;                     ///< legal, and fit into memory
  std::vector<Candidate> best;                   ///< simulated, fastest first
  std::map<std::string, std::int64_t> rejected;  ///< by reason; digits of a reason stand as N
  /// Of the best: median of |estimate - simulation| / simulation.
  double median_difference = 0;
};

struct SearchOptions {
  int simulated = 20;  ///< how many of the best are simulated
  int threads = 1;
};

/// `base`: resolved; its strategy, micro-batch and recompute are replaced. UsageError without a
/// global batch.
SearchResult search(const Scenario& base, const SearchSpace& space, const SearchOptions& options);

}  // namespace lockstep::sim
