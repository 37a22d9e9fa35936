// MemoryAdvice: the smallest changes of a scenario that make it fit its device.
//
// A change turns one knob and keeps the global batch. Changes are tried in the order of what they
// cost, cheapest first (memory_advice.cpp has the table with the reasons); each is validated and
// its peak is taken from the counted plan, so nothing is guessed. Where no single change is enough,
// the changes that help most are added up until the result fits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/scenario.h"

namespace lockstep {

struct MemoryChange {
  std::string flags;  ///< what to add to the command line: "--recompute full"
  std::string cost;   ///< what it costs, in words
  std::int64_t peak_bytes = 0;
  bool fits = false;
};

struct MemoryAdvice {
  /// At most three single changes that fit, cheapest first; when there are none, the three that
  /// come closest.
  std::vector<MemoryChange> single;
  /// Changes to make together, each with the peak after it; empty when a single one fits or when
  /// nothing helps.
  std::vector<MemoryChange> together;
};

/// Of a validated, resolved scenario.
MemoryAdvice memory_advice(const Scenario& scenario);

}  // namespace lockstep
