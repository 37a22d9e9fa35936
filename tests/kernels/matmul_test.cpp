#include "kernels/cpu/matmul.h"

#include <thread>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::matmul;
using kernels::cpu::matmul_grad_input;
using kernels::cpu::matmul_grad_weight;
using kernels::cpu::MatmulShape;

/// y = x w^T + bias by three loops.
std::vector<double> naive(const std::vector<double>& x,
                          const std::vector<double>& w,
                          const std::vector<double>& bias,
                          const MatmulShape& shape) {
  std::vector<double> y;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      double sum = bias[static_cast<std::size_t>(j)];
      for (std::int64_t p = 0; p < shape.k; ++p) {
        sum += x[static_cast<std::size_t>(i * shape.k + p)] *
               w[static_cast<std::size_t>(j * shape.k + p)];
      }
      y.push_back(sum);
    }
  }
  return y;
}

const std::vector<MatmulShape> kShapes = {{1, 1, 1}, {3, 5, 7}, {64, 48, 33}, {17, 130, 96}};

TEST_CASE("a linear layer equals three loops, in double and in float") {
  for (const MatmulShape& shape : kShapes) {
    INFO("m " << shape.m << ", n " << shape.n << ", k " << shape.k);
    const std::vector<double> x = normal_numbers<double>(shape.m * shape.k, 1);
    const std::vector<double> w = normal_numbers<double>(shape.n * shape.k, 2);
    const std::vector<double> bias = normal_numbers<double>(shape.n, 3);
    const std::vector<double> exact = naive(x, w, bias, shape);
    std::vector<double> y = zeros<double>(shape.m * shape.n);
    matmul(x.data(), w.data(), bias.data(), y.data(), shape);
    CHECK(relative_error(y, exact) < 1e-14);
    std::vector<float> y32 = zeros<float>(shape.m * shape.n);
    matmul(converted<float>(x).data(),
           converted<float>(w).data(),
           converted<float>(bias).data(),
           y32.data(),
           shape);
    CHECK(relative_error(y32, exact) < 2e-6);
  }
}

TEST_CASE("a product of floats shared by threads is the product, and the same every time") {
  const MatmulShape shape{257, 192, 130};
  const std::vector<double> x = normal_numbers<double>(shape.m * shape.k, 1);
  const std::vector<double> w = normal_numbers<double>(shape.n * shape.k, 2);
  const std::vector<double> bias = zeros<double>(shape.n);
  const std::vector<double> exact = naive(x, w, bias, shape);
  const std::vector<float> x32 = converted<float>(x);
  const std::vector<float> w32 = converted<float>(w);
  // Another thread's wish is its own: the number is kept by thread.
  std::thread([&] {
    for (const int threads : {1, 2, 3}) {
      kernels::cpu::set_float_gemm_threads(threads);
      std::vector<float> y = zeros<float>(shape.m * shape.n);
      std::vector<float> again = y;
      matmul<float>(x32.data(), w32.data(), nullptr, y.data(), shape);
      matmul<float>(x32.data(), w32.data(), nullptr, again.data(), shape);
      CHECK(relative_error(y, exact) < 2e-6);
      CHECK(y == again);
    }
  }).join();
}

TEST_CASE("gradients of a linear layer match finite differences") {
  const MatmulShape shape{6, 5, 4};
  std::vector<double> x = normal_numbers<double>(24, 1);
  std::vector<double> w = normal_numbers<double>(20, 2);
  std::vector<double> bias = normal_numbers<double>(5, 3);
  const std::vector<double> dy = normal_numbers<double>(30, 4);
  std::vector<double> y = zeros<double>(30);
  const auto f = [&] {
    matmul(x.data(), w.data(), bias.data(), y.data(), shape);
    return dot(y, dy);
  };
  std::vector<double> dx = zeros<double>(24);
  std::vector<double> dw = zeros<double>(20);
  std::vector<double> dbias = zeros<double>(5);
  matmul_grad_input(dy.data(), w.data(), dx.data(), false, shape);
  matmul_grad_weight(dy.data(), x.data(), dw.data(), false, shape);
  kernels::cpu::best<kernels::cpu::Elementwise<double>>().bias_grad(
      dy.data(), 5, dbias.data(), false, 6, 5);
  require_gradient(x, dx, f);
  require_gradient(w, dw, f);
  require_gradient(bias, dbias, f);
  // Accumulating adds the same once more.
  const std::vector<double> once = dw;
  matmul_grad_weight(dy.data(), x.data(), dw.data(), true, shape);
  for (std::size_t i = 0; i < once.size(); ++i) {
    CHECK(dw[i] == Approx(2 * once[i]).epsilon(1e-13));
  }
}

TEST_CASE("several weights write side by side and their input gradients add up") {
  const std::int64_t m = 5;
  const std::int64_t k = 4;
  const std::vector<double> x = normal_numbers<double>(m * k, 1);
  const std::vector<double> w = normal_numbers<double>(7 * k, 2);  // 3 and 4 rows
  const std::vector<double> none = zeros<double>(7);
  std::vector<double> y = zeros<double>(m * 7);
  matmul<double>(x.data(), w.data(), nullptr, y.data(), {m, 3, k, 0, 7});
  matmul<double>(x.data(), w.data() + 3 * k, nullptr, y.data() + 3, {m, 4, k, 0, 7});
  CHECK(relative_error(y, naive(x, w, none, {m, 7, k})) < 1e-14);
  std::vector<double> whole = zeros<double>(m * k);
  std::vector<double> parts = zeros<double>(m * k);
  matmul_grad_input(y.data(), w.data(), whole.data(), false, {m, 7, k});
  matmul_grad_input(y.data(), w.data(), parts.data(), false, {m, 3, k, 0, 7});
  matmul_grad_input(y.data() + 3, w.data() + 3 * k, parts.data(), true, {m, 4, k, 0, 7});
  CHECK(relative_error(parts, whole) < 1e-14);
}

TEST_CASE("threads that multiply at once each get the bits that one alone gets") {
  const MatmulShape shape{96, 80, 72};
  const std::vector<float> x = normal_numbers<float>(shape.m * shape.k, 1);
  const std::vector<float> w = normal_numbers<float>(shape.n * shape.k, 2);
  std::vector<float> alone = zeros<float>(shape.m * shape.n);
  matmul<float>(x.data(), w.data(), nullptr, alone.data(), shape);
  std::vector<std::vector<float>> results(4, zeros<float>(shape.m * shape.n));
  std::vector<std::thread> threads;
  for (std::vector<float>& result : results) {
    threads.emplace_back([&] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        matmul<float>(x.data(), w.data(), nullptr, result.data(), shape);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::vector<float>& result : results) {
    CHECK(result == alone);
  }
}

}  // namespace
}  // namespace lockstep
