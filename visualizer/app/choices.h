// Choices: which values a setting may take next to the others, and why not. Pure: a candidate is a
// changed scenario that the legality table is asked about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario.h"

namespace lockstep::app {

using Change = std::function<void(Scenario&)>;

/// Why the change makes the scenario worse; empty when it brings no new problem.
std::string reason_against(const Scenario& scenario, const Change& change);

struct Choice {
  std::string name;
  Change change;
  bool current = false;
};

/// A whole number of the scenario.
using Number = std::int64_t& (*)(Scenario&);

struct NumberField {
  const char* key = "";  ///< path, as problems name it
  Number number = nullptr;
  std::int64_t low = 1;
  std::int64_t high = 1;
  bool doubles = false;  ///< steps to the next power of two
  /// What else must change with it; may be null.
  void (*also)(Scenario&) = nullptr;
};

std::int64_t value_of(const NumberField& field, const Scenario& scenario);
void set(const NumberField& field, Scenario& scenario, std::int64_t value);

struct Neighbour {
  std::optional<std::int64_t> value;  ///< the nearest legal one in this direction
  std::string reason;                 ///< why not the very next one
};
Neighbour neighbour(const NumberField& field, const Scenario& scenario, int direction);

std::vector<Choice> model_choices(const Scenario& scenario);
std::vector<Choice> cluster_choices(const Scenario& scenario);
std::vector<Choice> data_kind_choices(const Scenario& scenario);
std::vector<Choice> schedule_choices(const Scenario& scenario);
std::vector<Choice> precision_choices(const Scenario& scenario);
std::vector<Choice> recompute_choices(const Scenario& scenario);
std::vector<Choice> optimizer_choices(const Scenario& scenario);

}  // namespace lockstep::app
