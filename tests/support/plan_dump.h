// Everything that a plan says, as text: for comparing two plans to the last field.
#pragma once

#include <string>

#include "core/plan.h"

namespace lockstep::test {

std::string dump(const Plan& plan);

}  // namespace lockstep::test
