// The operations of one program in order, as text, JSON or CSV, written while they are visited.
#pragma once

#include "cli/terminal.h"
#include "core/plan.h"

namespace lockstep::cli {

struct Listing {
  const Plan& plan;
  int class_index = 0;
  int section = 0;  ///< index into Plan::sections

  const Program& program() const {
    return plan.sections[static_cast<std::size_t>(section)]
        .programs[static_cast<std::size_t>(class_index)];
  }
};

/// Device bytes held after the operation when `held` were held before it.
std::int64_t held_after(const Listing& listing, const Operation& op, std::int64_t held);

/// One line per operation; memory held is shown where it changes, from `held` on.
void list_text(const Listing& listing, std::int64_t held, Printer& out);
void list_csv(const Listing& listing, std::int64_t held, Printer& out);
/// Elements of a JSON list, without its brackets.
void list_json(const Listing& listing, std::int64_t held, Printer& out);

}  // namespace lockstep::cli
