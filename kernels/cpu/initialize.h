// Initial parameters from a counter: element i of a parameter is the same number on every rank and
// under every sharding.
#pragma once

#include <cstdint>

#include "kernels/cpu/random.h"

namespace lockstep::kernels::cpu {

/// x[i] = element first + i of the normal distribution N(0, deviation^2) that `key` names, drawn in
/// double (Box-Muller) and rounded to T once.
template <typename T>
void initialize_normal(
    T* x, std::int64_t first, std::int64_t n, double deviation, const RandomKey& key);

template <typename T>
void initialize_constant(T* x, std::int64_t n, T value);

}  // namespace lockstep::kernels::cpu
