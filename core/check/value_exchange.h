// Value exchange: what a collective gives to each member, from what all members put in.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/check/value_memory.h"
#include "core/plan.h"

namespace lockstep {

/// What the maximum of two overflow flags is; only the owner of the flags knows.
using MergeFlags = std::function<field::Number(field::Number, field::Number)>;

/// Sum of members' slabs; uninitialised where any member's is. Symbols that do not mean the same
/// elements add up to a number that means nothing.
void sum_slabs(std::span<const ValueSlab* const> slabs, ValueSlab& sum);

/// Multiplies every number.
void scale_slab(ValueSlab& slab, field::Number factor);

/// Elements of an all_gather's or reduce_scatter's shard are op.elements; op says collective,
/// reduction and root. outputs[i] is left empty and `receives[i]` false for members whose buffer
/// stays as it is.
struct ExchangeResult {
  std::vector<ValueSlab> outputs;
  std::vector<std::uint8_t> receives;
};
void exchange(const Operation& op,
              std::span<const ValueSlab> inputs,
              const MergeFlags& merge_flags,
              ExchangeResult& result);

}  // namespace lockstep
