// The text level of the action CSV: characters to rows of placed actions. No schedule rules here
// (those are action_csv.cpp), only the grammar of a cell. Internal to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/planner/schedule/schedule.h"

namespace lockstep {

/// An action and the cell where it was read; row and cell count from 1.
struct PlacedAction {
  Action action;
  std::int32_t row = 1;
  std::int32_t cell = 1;
};

/// Throws BadInputError "<source>:<row>:<cell>: <reason>".
[[noreturn]] void fail_at(std::string_view source,
                          std::int32_t row,
                          std::int32_t cell,
                          std::string_view reason);

/// One vector per line; idle cells and blank lines at the end are dropped.
std::vector<std::vector<PlacedAction>> parse_action_rows(std::string_view text,
                                                         std::string_view source);

}  // namespace lockstep
