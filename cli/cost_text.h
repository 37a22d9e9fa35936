// CostText: what the operations of a simulated step cost and by which formula, for --explain.
#pragma once

#include <string>

#include "core/plan.h"
#include "core/scenario.h"
#include "core/trace.h"

namespace lockstep::cli {

/// The operations of the first track that take most of the time, those of equal price together.
std::string cost_text(const Scenario& scenario, const Plan& plan, const TraceStep& step);

}  // namespace lockstep::cli
