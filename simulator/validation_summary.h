// ValidationSummary: how far predictions are off, by metric, source and hardware.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simulator/validate_training.h"

namespace lockstep::sim {

struct ErrorStatistics {
  std::size_t rows = 0;
  double median = 0;  ///< of |error|
  double p90 = 0;     ///< of |error|
  double bias = 0;    ///< median of error
};
/// Quantiles are those of the sorted values at index floor(q * rows).
ErrorStatistics statistics_of(std::vector<double> errors);

struct GroupStatistics {
  std::string name;
  ErrorStatistics inside;
  ErrorStatistics rest;  ///< of all other groups together
};

/// Of the selected rows of one metric, and apart from them of the others.
struct MetricSummary {
  Metric metric = Metric::kStepTime;
  ErrorStatistics all;
  std::vector<GroupStatistics> by_source;  ///< each source against the rest, by falling rows
  std::vector<GroupStatistics> by_hardware;
  std::vector<GroupStatistics> by_regime;
  /// Of the rows that the rule leaves out, by its reason; `rest` stays empty.
  ErrorStatistics left_out;
  std::vector<GroupStatistics> by_reason;
  std::vector<const ValidatedRow*> worst;  ///< at most ten, by falling |error|
};

/// One entry per metric that has rows. Points into `rows`.
std::vector<MetricSummary> summarize(const std::vector<ValidatedRow>& rows);

}  // namespace lockstep::sim
