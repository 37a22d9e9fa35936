#include "kernels/cpu/dispatch.h"

#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/batch_norm.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"

namespace lockstep::kernels::cpu {

// Instantiated by the source files that are built per level.
namespace baseline {
template <typename Group>
const Group& table();
}
namespace avx2 {
template <typename Group>
const Group& table();
}
namespace avx512 {
template <typename Group>
const Group& table();
}

namespace {

constexpr bool kHasX86Levels = LOCKSTEP_X86_LEVELS != 0;

Level best_level() {
  static const Level level = available(Level::kAvx512) ? Level::kAvx512
                             : available(Level::kAvx2) ? Level::kAvx2
                                                       : Level::kBaseline;
  return level;
}

}  // namespace

template <typename Group>
const Group& kernels_at(Level level) {
  if constexpr (kHasX86Levels) {
    if (level == Level::kAvx512) {
      return avx512::table<Group>();
    }
    if (level == Level::kAvx2) {
      return avx2::table<Group>();
    }
  }
  return baseline::table<Group>();
}

template <typename Group>
const Group& best() {
  static const Group& kernels = kernels_at<Group>(best_level());
  return kernels;
}

// Instantiates both functions for a group of float and of double. The name of a template cannot
// stand in parentheses: NOLINTBEGIN(bugprone-macro-parentheses)
#define LOCKSTEP_GROUP(Group)                                     \
  template const Group<float>& kernels_at<Group<float>>(Level);   \
  template const Group<double>& kernels_at<Group<double>>(Level); \
  template const Group<float>& best<Group<float>>();              \
  template const Group<double>& best<Group<double>>()

LOCKSTEP_GROUP(Activation);
LOCKSTEP_GROUP(Attention);
LOCKSTEP_GROUP(BatchNorm);
LOCKSTEP_GROUP(Dropout);
LOCKSTEP_GROUP(Elementwise);
LOCKSTEP_GROUP(Embedding);
LOCKSTEP_GROUP(EigenGemm);
LOCKSTEP_GROUP(Loss);
LOCKSTEP_GROUP(Norm);
LOCKSTEP_GROUP(Optimizer);

#undef LOCKSTEP_GROUP
// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lockstep::kernels::cpu
