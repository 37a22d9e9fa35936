// StrategyOutcome: what became of one strategy when several are compared: finished reports, or why
// there are none. simulator/compare.h makes it; tables and pictures read it.
#pragma once

#include <string>

#include "core/memory_report.h"
#include "core/report.h"

namespace lockstep {

struct StrategyOutcome {
  std::string words;    ///< the strategy as it was asked for: "zero1,tp=2"
  std::string refused;  ///< why it cannot be; empty when it can, and only then the rest holds
  Report report;
  MemoryReport memory;

  /// By a rank, mean, without control messages.
  double sent_bytes() const {
    double sum = 0;
    for (const ReportTraffic& it : report.traffic) {
      sum += it.control ? 0 : it.sent_bytes;
    }
    return sum;
  }
};

}  // namespace lockstep
