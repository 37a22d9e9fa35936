// The arithmetic of collectives: element-wise sums, maxima and averages of every element type.
//
// fp16 and bf16 are widened to fp32 for the arithmetic. reduce_in_order() rounds once, at the end;
// reduce_pair(), of which rings and trees are made, rounds at every step, as NCCL's do. Integer
// sums wrap, integer averages are cut towards zero. A maximum with a NaN is NaN.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan.h"

namespace lockstep::exec {

/// to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ..., in exactly this order (or the maximum),
/// for kAverage then divided by from.size(). `to` may be one of `from`.
void reduce_in_order(Reduction reduction,
                     DType dtype,
                     void* to,
                     std::span<const void* const> from,
                     std::int64_t elements);

/// to[i] = a[i] + b[i] (or the maximum; kAverage adds). `to` may be a or b.
void reduce_pair(Reduction reduction,
                 DType dtype,
                 void* to,
                 const void* a,
                 const void* b,
                 std::int64_t elements);

/// values[i] /= by.
void divide(DType dtype, void* values, std::int64_t elements, int by);

/// Nearest value, ties to even; used by tests and conversions.
float half_to_float(std::uint16_t half);
std::uint16_t float_to_half(float value);
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);

}  // namespace lockstep::exec
