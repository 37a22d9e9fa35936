#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {

void gemm(const GemmArguments<double>& arguments) {
  best<EigenGemm<double>>().gemm(arguments);
}

}  // namespace lockstep::kernels::cpu
