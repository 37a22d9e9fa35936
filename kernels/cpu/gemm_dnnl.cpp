// The one file that knows oneDNN. Its sgemm runs at the rate of its matmul primitive (measured:
// within 3 % on the shapes of tests/benchmark/kernels_bench.cpp), takes leading dimensions and adds
// to the result, and has no primitive to create, cache and lock.
#include <stdexcept>
#include <string>

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/cpu/gemm.h"

namespace lockstep::kernels::cpu {
namespace {

/// oneDNN asks OpenMP how many threads the caller may use; OpenMP keeps the answer per thread.
/// Every rank is a thread of its own and multiplies alone, unless it is told otherwise.
bool& threads_are_set() {
  thread_local bool set = false;
  return set;
}

}  // namespace

void set_float_gemm_threads(int threads) {
  omp_set_num_threads(threads);
  threads_are_set() = true;
}

bool float_gemm_has_threads() {
  return true;
}

void gemm(const GemmArguments<float>& arguments) {
  if (!threads_are_set()) {
    set_float_gemm_threads(1);
  }
  const GemmArguments<float>& g = arguments;
  const dnnl_status_t status = dnnl_sgemm(g.transpose_a ? 'T' : 'N',
                                          g.transpose_b ? 'T' : 'N',
                                          g.m,
                                          g.n,
                                          g.k,
                                          1.0F,
                                          g.a,
                                          g.lda,
                                          g.b,
                                          g.ldb,
                                          g.accumulate ? 1.0F : 0.0F,
                                          g.c,
                                          g.ldc);
  if (status != dnnl_success) {
    throw std::runtime_error("[kernels] oneDNN refused a matrix product: status " +
                             std::to_string(status) + ", m " + std::to_string(g.m) + ", n " +
                             std::to_string(g.n) + ", k " + std::to_string(g.k));
  }
}

std::string_view float_gemm_library() {
  static const std::string name = [] {
    const dnnl_version_t* version = dnnl_version();
    return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
           std::to_string(version->patch);
  }();
  return name;
}

}  // namespace lockstep::kernels::cpu
