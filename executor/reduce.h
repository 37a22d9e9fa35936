// The arithmetic of collectives: element-wise sums, maxima and averages of every element type.
//
// fp16 and bf16 are widened to fp32 for the arithmetic. reduce_in_order() rounds once, at the end;
// reduce_pair(), of which rings and trees are made, rounds at every step, as NCCL's do. An average
// of floats multiplies every term by 1 / members before it is added, an average of integers divides
// the sum, cut towards zero (NCCL src/enqueue.cc, hostToDevRedOp: ncclAvg becomes PreMulSum or
// SumPostDiv). That is also what a sum of terms scaled beforehand gives, so averaging inside or
// outside a collective leaves the same bits. Integer sums wrap. A maximum with a NaN is NaN.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan.h"

namespace lockstep::exec {

/// to[i] = ((from[0][i] + from[1][i]) + from[2][i]) + ..., in exactly this order (or the maximum,
/// or the average over from.size()). `to` may be one of `from`.
void reduce_in_order(Reduction reduction,
                     DType dtype,
                     void* to,
                     std::span<const void* const> from,
                     std::int64_t elements);

/// What every member's elements are multiplied by before they are added: not 1 in averages of
/// floats only.
double factor_of_terms(Reduction reduction, DType dtype, int members);

/// Values times a factor; of a partial sum, whose terms have theirs, the factor is 1.
struct Term {
  const void* data = nullptr;
  double factor = 1;
};

/// to[i] = a[i] + b[i] (or the maximum; kAverage adds). `to` may be a's or b's data.
void reduce_pair(
    Reduction reduction, DType dtype, void* to, const Term& a, const Term& b, std::int64_t n);

/// The last step of an average: divides sums of integers, leaves floats.
void finish_average(DType dtype, void* values, std::int64_t elements, int members);

/// Nearest value, ties to even; used by tests and conversions.
float half_to_float(std::uint16_t half);
std::uint16_t float_to_half(float value);
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);

}  // namespace lockstep::exec
