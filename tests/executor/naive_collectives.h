// What a collective has to give, by its definition: plain loops over all inputs at once, in double.
// The values of the tests are small integers, so that every element type holds every sum exactly.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/plan.h"

namespace lockstep::test {

using Values = std::vector<double>;

inline double reduce_naively(Reduction reduction,
                             DType dtype,
                             const std::vector<Values>& inputs,
                             std::size_t element) {
  double value = inputs[0][element];
  for (std::size_t k = 1; k < inputs.size(); ++k) {
    value = reduction == Reduction::kMax ? std::max(value, inputs[k][element])
                                         : value + inputs[k][element];
  }
  if (reduction == Reduction::kAverage) {
    value /= static_cast<double>(inputs.size());
    const bool integer = dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kUint8;
    value = integer ? std::trunc(value) : value;
  }
  return value;
}

/// Output of member `rank`, or {} if it has none. `n` is Operation::elements.
inline Values naive_output(Collective kind,
                           Reduction reduction,
                           DType dtype,
                           const std::vector<Values>& inputs,
                           std::size_t n,
                           std::size_t root,
                           std::size_t rank) {
  const std::size_t members = inputs.size();
  Values out;
  const auto append = [&](const Values& from, std::size_t begin, std::size_t count) {
    out.insert(out.end(),
               from.begin() + static_cast<std::ptrdiff_t>(begin),
               from.begin() + static_cast<std::ptrdiff_t>(begin + count));
  };
  const auto append_reduced = [&](std::size_t begin) {
    for (std::size_t i = 0; i < n; ++i) {
      out.push_back(reduce_naively(reduction, dtype, inputs, begin + i));
    }
  };
  const bool at_root = rank == root;
  switch (kind) {
    case Collective::kAllReduce:
      append_reduced(0);
      break;
    case Collective::kReduce:
      if (at_root) {
        append_reduced(0);
      }
      break;
    case Collective::kReduceScatter:
      append_reduced(rank * n);
      break;
    case Collective::kAllGather:
    case Collective::kGather:
      for (std::size_t k = 0; k < members && (kind == Collective::kAllGather || at_root); ++k) {
        append(inputs[k], 0, n);
      }
      break;
    case Collective::kBroadcast:
      append(inputs[root], 0, n);
      break;
    case Collective::kScatter:
      append(inputs[root], rank * n, n);
      break;
    case Collective::kAllToAll:
      for (std::size_t k = 0; k < members; ++k) {
        append(inputs[k], rank * (n / members), n / members);
      }
      break;
    case Collective::kBarrier:
      break;
  }
  return out;
}

/// Elements of a member's input.
inline std::size_t input_elements(Collective kind, std::size_t n, std::size_t members) {
  const bool whole = kind == Collective::kReduceScatter || kind == Collective::kScatter;
  return whole ? n * members : n;
}

}  // namespace lockstep::test
