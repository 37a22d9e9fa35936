// What `lockstep validate` prints: a report for people, JSON by the command contract, CSV.
#pragma once

#include <string>

#include "simulator/validation_summary.h"

namespace lockstep::cli {

struct ValidationView {
  const sim::ValidationReport& report;
  bool explain = false;
};

std::string validation_text(const ValidationView& view);
std::string validation_json(const ValidationView& view);
std::string validation_csv(const ValidationView& view);

}  // namespace lockstep::cli
