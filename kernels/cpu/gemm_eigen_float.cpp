// Built where oneDNN is missing or switched off (LOCKSTEP_ONEDNN); install libdnnl-dev to have it.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {

void gemm(const GemmArguments<float>& arguments) {
  best<EigenGemm<float>>().gemm(arguments);
}

std::string_view float_gemm_library() {
  return "Eigen";
}

}  // namespace lockstep::kernels::cpu
