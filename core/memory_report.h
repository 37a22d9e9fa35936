// MemoryReport: the bytes of every class of ranks at their peak, what to add for what the plan does
// not see (context, communicators, libraries), an upper bound, and whether it fits the device.
//
//   peak        = buffers of the plan at its highest moment + non-tensor memory   (point estimate)
//   upper bound = peak + margins                                                 (each with a name)
//
// The highest moment is looked for in init and in every form of the step: the first iterations of
// some strategies differ. Plans too large to emit in a moment are counted instead (steady step
// only), and the report says so.
//
// What it is not: host memory, and allocators other than the caching one that the margins describe.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/memory_ledger.h"
#include "core/planner/planner.h"
#include "core/scenario.h"

namespace lockstep {

/// One class of ranks.
struct RankMemory {
  int class_index = 0;
  int rank = 0;   ///< the smallest of the class
  int count = 1;  ///< ranks that hold the same
  CategoryBytes bytes{};
  MemoryPeak peak;           ///< where the buffers stood highest
  std::string peak_text;     ///< the operation there, in words
  std::string peak_section;  ///< "step", "step[0]", "init"
  std::vector<MemoryTerm> non_tensor;
  std::vector<MemoryTerm> margins;
  std::vector<LedgerRow> rows;  ///< what the bytes are; empty unless asked for

  std::int64_t tensor_bytes() const { return total(bytes); }
  std::int64_t non_tensor_bytes() const;
  std::int64_t peak_bytes() const { return tensor_bytes() + non_tensor_bytes(); }
  std::int64_t upper_bound_bytes() const;
};

struct MemoryReport {
  std::int64_t parameters = 0;    ///< logical, each once
  std::int64_t device_bytes = 0;  ///< memory of one device
  Mesh mesh;
  AxisMask class_axes = 0;
  bool counted = false;           ///< too large to emit: figures are those of the steady step
  std::vector<RankMemory> ranks;  ///< highest peak first, then by rank

  const RankMemory& worst() const { return ranks.front(); }
  bool fits() const { return worst().peak_bytes() <= device_bytes; }
  /// True when the upper bound of every class fits.
  bool surely_fits() const;
  /// All ranks of a class, ascending.
  std::vector<int> ranks_of(const RankMemory& of) const;
};

struct MemoryReportOptions {
  bool rows = false;                        ///< name every buffer at the peak
  std::int64_t max_operations = 4'000'000;  ///< of all classes; larger plans are counted
  /// The scenario's plan without evaluate and save, for those who have it already.
  const Plan* plan = nullptr;
};

/// Of a validated, resolved scenario.
MemoryReport memory_report(const Scenario& scenario, const MemoryReportOptions& options = {});

/// Only the highest peak of all classes, from the counted plan: for searches.
std::int64_t counted_peak_bytes(const Scenario& scenario);
/// The same for those who have the summary already.
std::int64_t counted_peak_bytes(const Scenario& scenario, const PlanSummary& summary);

}  // namespace lockstep
