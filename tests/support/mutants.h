// Mutants: a plan with one operation left out, or issued twice. A check that does not notice most
// of them checks nothing.
//
//     const Plan mutant = remove_operation(plan, class_index, section, operation);
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace lockstep::test {

/// The plan without one operation of one class's program; what depended on it depends on what it
/// depended on.
Plan remove_operation(const Plan& plan, int class_index, int section, std::uint32_t operation);

/// The plan with one operation twice in a row; what depended on it depends on the second.
Plan duplicate_operation(const Plan& plan, int class_index, int section, std::uint32_t operation);

/// True for what the value check must not miss when it is removed or duplicated: communication,
/// scale, add, pack with a factor, and works that add to a gradient.
bool is_bookkeeping(const Operation& op);

}  // namespace lockstep::test
