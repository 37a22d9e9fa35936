// ValidateTraining: predictions for the rows of published runs, and how far off they are.
//
//   const std::vector<TrainingRow> rows = training_rows(table);
//   const ValidationReport report = validate_rows(rows, kind_of(table), machines, {});
//
// A row is predicted as any scenario is: planned, simulated, counted. What a row means as a
// scenario is decided in simulator/row_scenario.h, by rules that look at no name of a source or a
// model.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/validation_io.h"
#include "simulator/efficiency.h"
#include "simulator/row_scenario.h"

namespace lockstep::sim {

enum class Metric : std::uint8_t { kStepTime, kTokensPerSecond, kPeakMemory, kCollectiveTime };
std::string_view name_of(Metric metric);

/// One prediction. error = (predicted - measured) / measured.
struct ValidatedRow {
  std::string id;
  std::string source;
  std::string hardware;
  Metric metric = Metric::kStepTime;
  double predicted = 0;
  double measured = 0;
  double error = 0;
  std::string regime;    ///< what its time or reading consists of: "fsdp, full recompute"
  std::string left_out;  ///< why the selection rule leaves it out; empty = selected
};

struct RefusedRow {
  std::string id;
  std::string reason;
};

struct ValidationReport {
  std::vector<ValidatedRow> rows;
  std::vector<RefusedRow> refused;
};

struct ValidationOptions {
  bool all = false;  ///< predict also the rows that the selection rule leaves out
  int threads = 1;
  Efficiency efficiency{};
  std::function<void(std::size_t done, std::size_t total)> progress = nullptr;  ///< by any thread
};

ValidationReport validate_rows(const std::vector<TrainingRow>& rows,
                               ValidationTable table,
                               const Machines& machines,
                               const ValidationOptions& options);

/// Seconds of the repeating step, by event simulation.
double predicted_step_time(const Scenario& scenario, const Efficiency& efficiency = kEfficiency);
/// Bytes as a reading of this kind sees them on the rank (or stage) that was read.
double predicted_peak_bytes(const Scenario& scenario, const TrainingRow& row);

}  // namespace lockstep::sim
