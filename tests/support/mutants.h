// Mutants: a plan with one operation left out, or issued twice. A check that does not notice most
// of them checks nothing.
//
//     const Plan mutant = remove_operation(plan, class_index, section, operation);
#pragma once

#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace lockstep::test {

/// The plan without one operation of one class's program; what depended on it depends on what it
/// depended on.
Plan remove_operation(const Plan& plan, int class_index, int section, std::uint32_t operation);

/// The plan with one operation twice in a row; what depended on it depends on the second.
Plan duplicate_operation(const Plan& plan, int class_index, int section, std::uint32_t operation);

/// The plan with one class's operations in another order: `order` names each operation once.
/// Dependencies follow their operations; one that would come later is dropped.
Plan reorder_operations(const Plan& plan,
                        int class_index,
                        int section,
                        const std::vector<std::uint32_t>& order);

/// The plan with one operation more, which has neither operands nor dependencies, at index `at`.
Plan insert_operation(
    const Plan& plan, int class_index, int section, std::uint32_t at, const Operation& operation);

/// True for what the value check must not miss when it is removed or duplicated: communication,
/// scale, add, pack with a factor, and works that add to a gradient.
bool is_bookkeeping(const Operation& op);

}  // namespace lockstep::test
