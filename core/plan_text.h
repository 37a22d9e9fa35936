// Plan text: operations, groups and sections of a plan in words, on one line each.
//
// Plans hold no strings; whoever reports something about an operation (checks, command line,
// traces) asks here, so that one operation is called the same everywhere:
//
//     rank class 3 step #812: all_gather tp 524288 bf16, h.7.mlp.up, micro-batch 4, backward
#pragma once

#include <cstdint>
#include <string>

#include "core/plan.h"

namespace lockstep {

/// The smallest rank of the class.
int rank_of_class(const Plan& plan, int class_index);

/// Axes of a communicator, outermost first: "dp", "pp+tp", "pp{0,3}"; "self" when it has none.
std::string group_text(const Communicator& communicator);

/// The same without axes along which the mesh has one coordinate only.
std::string group_text(const Mesh& mesh, const Communicator& communicator);

/// "init", "step", "evaluate", "save"; "step[1]" when the plan has several step variants.
std::string section_text(const Plan& plan, int section);

/// What the operation does and where in the model: "all_gather tp 524288 bf16, h.7.mlp.up,
/// micro-batch 4, backward". `class_index` names the buffer table that its operands refer to.
std::string operation_text(const Plan& plan, int class_index, const Operation& op);

/// Where the operation stands, then operation_text().
std::string describe(const Plan& plan, int class_index, int section, std::uint32_t index);

}  // namespace lockstep
