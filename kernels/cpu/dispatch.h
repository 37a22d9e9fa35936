// Dispatch: which build of the vectorised kernels this processor runs.
//
// Every vectorised source file is compiled once per instruction set (CMakeLists.txt) and exports
// its kernels as a group: a struct of function pointers, such as Activation<float>. best<Group>()
// is the fastest build that this processor can run:
//
//     best<Activation<T>>().gelu(x, y, n);
//
// All builds give the same bits (no fused multiply-add, reductions over a fixed number of lanes),
// but for matrix products and flash attention, which use what the processor has.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

enum class Level : std::uint8_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kLevelCount = 3;

/// True where the build exists and this processor can run it. kBaseline always is.
bool available(Level level);

/// The kernels as built for `level`, which must be available. Groups are those of the headers of
/// this folder, for float and double.
template <typename Group>
const Group& kernels_at(Level level);

/// The kernels of the highest available level.
template <typename Group>
const Group& best();

}  // namespace lockstep::kernels::cpu
