// Operand counts: how many inputs and outputs each work has, the table form of core/operands.h.
#pragma once

#include "core/plan.h"

namespace lockstep {

/// Inclusive limits. kMany stands for "as many as an operation can name".
struct OperandCounts {
  static constexpr int kMany = 255;
  int min_inputs = 0;
  int max_inputs = 0;
  int min_outputs = 0;
  int max_outputs = 0;

  bool allows(int inputs, int outputs) const {
    return inputs >= min_inputs && inputs <= max_inputs && outputs >= min_outputs &&
           outputs <= max_outputs;
  }
  bool operator==(const OperandCounts&) const = default;
};

inline constexpr int kWorkCount = static_cast<int>(Work::kCommit) + 1;

/// Limits for an operation that runs `work` (kCompute, kHost).
OperandCounts operand_counts(Work work);

/// Limits for any operation: by its work, or by its kind where the kind has none.
OperandCounts operand_counts(const Operation& op);

}  // namespace lockstep
