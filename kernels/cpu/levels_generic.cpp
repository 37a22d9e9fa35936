#include "kernels/cpu/dispatch.h"

namespace lockstep::kernels::cpu {

// Only the build for the compiler's default target exists here.
bool available(Level level) {
  return level == Level::kBaseline;
}

}  // namespace lockstep::kernels::cpu
