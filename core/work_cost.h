// WorkCost: what one operation asks of a device, from its work, shape and element type alone.
//
// FLOPs are those of matrix products, 2mnk each; other works count none. Bytes are those of an
// implementation that reads and writes every operand of core/operands.h once. The sums over a
// plan's operations equal core/module_cost.h (a test). What it is not: time (the simulator's).
#pragma once

#include "core/plan.h"

namespace lockstep {

struct WorkCost {
  double flops = 0;  ///< of matrix products
  double bytes = 0;  ///< read and written in device memory
  /// The matrix product's extents, `batch` of them: (m, k) x (k, n); all 0 for other works.
  /// Attention: batch x heads products of (seq, head) x (head, seq) and back.
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  std::int64_t batch = 0;
};

/// Of a kCompute or kHost operation with this shape (extents as core/operands.h lists them).
WorkCost work_cost(Work work, const Shape& shape, DType dtype);

}  // namespace lockstep
