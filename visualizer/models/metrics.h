// Metrics: the figures that sum a step up, each with its text and which way is better, so that two
// runs can be set side by side. They are the report's; nothing is computed here but differences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory_report.h"
#include "core/report.h"

namespace lockstep::view {

enum class MetricId : std::uint8_t {
  kStepTime,
  kTokens,
  kMfu,
  kPeakMemory,
  kExposed,
  kBubble,
  kSent,
};

struct Metric {
  MetricId id = MetricId::kStepTime;
  double value = 0;  ///< [s], [1/s], fraction, [B]
  std::string text;  ///< with its unit
  std::string note;  ///< what it is measured against: "of 79.18 GiB, rank 3"
  bool less_is_better = true;
};

std::vector<Metric> metrics(const Report& report, const MemoryReport& memory);

/// "+3.2 %" of the other's value; of fractions the difference in percentage points, "-1.5 pp";
/// empty when nothing changed.
std::string difference_text(const Metric& now, const Metric& before);

}  // namespace lockstep::view
