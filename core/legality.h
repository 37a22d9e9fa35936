// The legality table: which settings of different sections exclude each other, and why. Each rule
// is a row with a stable id (the reason that `lockstep search` counts), the key to change, a reason
// in words and a predicate. Rules about one section alone stand in that section's validate().
#pragma once

#include <span>
#include <string>

#include "core/problems.h"
#include "core/scenario.h"

namespace lockstep {

struct LegalityRule {
  const char* id;                                   ///< "tp_divides_heads"
  const char* place;                                ///< key path of what to change
  const char* reason;                               ///< in words, with the cause
  bool (*broken)(const Scenario& scenario);         ///< defined for any values, also absurd ones
  std::string (*values)(const Scenario& scenario);  ///< the numbers of this scenario; may be null

  /// The reason with the values put in.
  std::string message(const Scenario& scenario) const;
};

std::span<const LegalityRule> legality_rules();

/// Adds every broken rule.
void check_legality(const Scenario& scenario, Problems& problems);

/// The first broken rule or null: no allocation, for search over many scenarios.
const LegalityRule* first_broken_rule(const Scenario& scenario);

}  // namespace lockstep
