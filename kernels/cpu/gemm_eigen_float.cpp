// Built where oneDNN is missing or switched off (LOCKSTEP_ONEDNN); install libdnnl-dev to have it.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {

void gemm(const GemmArguments<float>& arguments) {
  best<EigenGemm<float>>().gemm(arguments);
}

void set_float_gemm_threads(int /*threads*/) {}

bool float_gemm_has_threads() {
  return false;
}

std::string_view float_gemm_library() {
  return "Eigen";
}

}  // namespace lockstep::kernels::cpu
