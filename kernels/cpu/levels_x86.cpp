#include "kernels/cpu/dispatch.h"

namespace lockstep::kernels::cpu {

bool available(Level level) {
  // The flags of each level in kernels/CMakeLists.txt.
  switch (level) {
    case Level::kBaseline:
      return true;
    case Level::kAvx2:
      return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
    case Level::kAvx512:
      return available(Level::kAvx2) && __builtin_cpu_supports("avx512f") != 0 &&
             __builtin_cpu_supports("avx512bw") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
             __builtin_cpu_supports("avx512vl") != 0;
  }
  return false;
}

}  // namespace lockstep::kernels::cpu
