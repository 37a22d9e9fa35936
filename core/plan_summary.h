// PlanSummary: what a plan amounts to without its order: operations by kind, work and shape,
// messages by group, bytes held by category, and the point of the peak. Counted by the same planner
// code that emits the plan (ProgramBuilder in counting mode), so there is no second truth; a
// property test holds the two equal.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace lockstep {

using CategoryBytes = std::array<std::int64_t, kCategoryCount>;
std::int64_t total(const CategoryBytes& bytes);

/// Operations that agree in all these fields, and how many there are.
struct OperationCount {
  OperationKind kind = OperationKind::kCompute;
  Work work = Work::kNone;
  Collective collective = Collective::kAllReduce;
  Phase phase = Phase::kForward;
  Stream stream = Stream::kCompute;
  std::uint8_t communicator = kNoCommunicator;
  DType dtype = DType::kFp32;
  bool control = false;
  std::uint32_t shape = 0;
  std::int64_t elements = 0;
  std::int64_t count = 0;
  bool operator==(const OperationCount&) const = default;
};

/// Where memory stood highest: the operation that was issued next, by its place in the model.
struct MemoryPeak {
  CategoryBytes bytes{};
  Phase phase = Phase::kInit;
  Work work = Work::kNone;
  std::uint32_t module = kNoModule;
  std::int32_t microbatch = -1;
};

struct ProgramSummary {
  std::vector<OperationCount> counts;  ///< operations other than alloc and free
  std::int64_t operations = 0;         ///< all of them
  CategoryBytes at_start{};
  CategoryBytes at_end{};
  MemoryPeak peak;
};

/// The summary of an emitted program, by walking it. `at_start`: bytes held when it begins.
ProgramSummary summarize(const Plan& plan,
                         int class_index,
                         const Program& program,
                         const CategoryBytes& at_start);

}  // namespace lockstep
