// Rates of the CPU kernels on the shape of DESIGN.md's budget: GPT-2 form, 6 layers, hidden 384, 6
// heads, sequence 256, micro-batch 8, vocabulary 256 and 50,304. One thread. Rates are per second
// of CPU time, so that neighbours on the machine disturb them less.
//
//     build/release/bin/kernels_bench --benchmark_filter=matmul
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/loss.h"
#include "kernels/cpu/matmul.h"
#include "kernels/cpu/norm.h"
#include "kernels/cpu/optimizer.h"

namespace {

using namespace lockstep::kernels::cpu;  // NOLINT(google-build-using-namespace)
using benchmark::State;

constexpr std::int64_t kTokens = 8 * 256;
constexpr std::int64_t kHidden = 384;
constexpr AttentionShape kAttention{8, 256, {6, 6, 64}, 0};

std::vector<float> numbers(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>((i * 2654435761U) % 1000U) / 500.0F - 1.0F;
  }
  return values;
}

void rate(State& state, const char* name, double per_iteration) {
  state.counters[name] = benchmark::Counter(
      per_iteration, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

MatmulShape shape_of(const State& state) {
  return {kTokens, state.range(0), state.range(1)};
}

void matmul_forward(State& state) {
  const MatmulShape s = shape_of(state);
  const std::vector<float> x = numbers(s.m * s.k);
  const std::vector<float> w = numbers(s.n * s.k);
  const std::vector<float> bias = numbers(s.n);
  std::vector<float> y = numbers(s.m * s.n);
  for (auto _ : state) {
    matmul(x.data(), w.data(), bias.data(), y.data(), s);
  }
  rate(state, "FLOP", static_cast<double>(2 * s.m * s.n * s.k));
}

void matmul_input_gradient(State& state) {
  const MatmulShape s = shape_of(state);
  const std::vector<float> dy = numbers(s.m * s.n);
  const std::vector<float> w = numbers(s.n * s.k);
  std::vector<float> dx = numbers(s.m * s.k);
  for (auto _ : state) {
    matmul_grad_input(dy.data(), w.data(), dx.data(), false, s);
  }
  rate(state, "FLOP", static_cast<double>(2 * s.m * s.n * s.k));
}

void matmul_weight_gradient(State& state) {
  const MatmulShape s = shape_of(state);
  const std::vector<float> dy = numbers(s.m * s.n);
  const std::vector<float> x = numbers(s.m * s.k);
  std::vector<float> dw = numbers(s.n * s.k);
  for (auto _ : state) {
    matmul_grad_weight(dy.data(), x.data(), dw.data(), true, s);
  }
  rate(state, "FLOP", static_cast<double>(2 * s.m * s.n * s.k));
}

void layers(benchmark::internal::Benchmark* bench) {
  bench->Args({1152, 384})->Args({384, 384})->Args({1536, 384})->Args({384, 1536});
  bench->Args({256, 384})->Args({50304, 384});
}
BENCHMARK(matmul_forward)->Apply(layers);
BENCHMARK(matmul_input_gradient)->Apply(layers);
BENCHMARK(matmul_weight_gradient)->Apply(layers);

/// FLOPs of the causal half of two products forward, five backward.
double attention_flops(int products) {
  const HeadShape& heads = kAttention.heads;
  return static_cast<double>(products * kAttention.batch * heads.heads * heads.dim *
                             kAttention.seq * kAttention.seq);
}

struct Flash {
  std::vector<float> qkv = numbers(kTokens * kAttention.heads.width());
  std::vector<float> y = numbers(kTokens * kHidden);
  std::vector<float> lse = numbers(kTokens * 6);
  std::vector<float> workspace = numbers(flash_workspace(kAttention));
  void forward() {
    best<Attention<float>>().flash(qkv.data(), y.data(), lse.data(), workspace.data(), kAttention);
  }
};

void flash_forward(State& state) {
  Flash f;
  for (auto _ : state) {
    f.forward();
  }
  rate(state, "FLOP", attention_flops(2));
}
BENCHMARK(flash_forward);

void flash_backward(State& state) {
  Flash f;
  f.forward();
  const std::vector<float> dy = numbers(kTokens * kHidden);
  std::vector<float> dqkv = f.qkv;
  for (auto _ : state) {
    best<Attention<float>>().flash_grad(dy.data(),
                                        {f.qkv.data(), f.y.data(), f.lse.data()},
                                        dqkv.data(),
                                        f.workspace.data(),
                                        kAttention);
  }
  rate(state, "FLOP", attention_flops(5));
}
BENCHMARK(flash_backward);

void norm_forward(State& state) {
  const std::vector<float> x = numbers(kTokens * kHidden);
  const std::vector<float> w = numbers(kHidden);
  std::vector<float> y = x;
  std::vector<float> statistics = numbers(2 * kTokens);
  for (auto _ : state) {
    best<Norm<float>>().layer(x.data(),
                              {w.data(), w.data(), nullptr, 1e-5},
                              y.data(),
                              statistics.data(),
                              {kTokens, kHidden});
  }
  rate(state, "B", 8.0 * kTokens * kHidden);
}
BENCHMARK(norm_forward);

void norm_backward(State& state) {
  const std::vector<float> x = numbers(kTokens * kHidden);
  std::vector<float> w = numbers(kHidden);
  std::vector<float> dw = w;
  std::vector<float> dx = x;
  const std::vector<float> statistics(2 * kTokens, 0.5F);
  for (auto _ : state) {
    best<Norm<float>>().layer_grad(x.data(),
                                   {x.data(), statistics.data()},
                                   w.data(),
                                   {dx.data(), dw.data(), dw.data(), nullptr, false},
                                   {kTokens, kHidden});
  }
  rate(state, "B", 12.0 * kTokens * kHidden);
}
BENCHMARK(norm_backward);

void gelu_forward(State& state) {
  const std::vector<float> x = numbers(kTokens * 4 * kHidden);
  std::vector<float> y = x;
  for (auto _ : state) {
    best<Activation<float>>().gelu(x.data(), y.data(), kTokens * 4 * kHidden);
  }
  rate(state, "B", 8.0 * kTokens * 4 * kHidden);
}
BENCHMARK(gelu_forward);

void gelu_backward(State& state) {
  const std::vector<float> x = numbers(kTokens * 4 * kHidden);
  std::vector<float> dx = x;
  for (auto _ : state) {
    best<Activation<float>>().gelu_grad(x.data(), x.data(), dx.data(), kTokens * 4 * kHidden);
  }
  rate(state, "B", 12.0 * kTokens * 4 * kHidden);
}
BENCHMARK(gelu_backward);

void add(State& state) {
  std::vector<float> x = numbers(kTokens * kHidden);
  std::vector<float> y = x;
  for (auto _ : state) {
    best<Elementwise<float>>().add(x.data(), y.data(), y.data(), kTokens * kHidden);
  }
  rate(state, "B", 12.0 * kTokens * kHidden);
}
BENCHMARK(add);

void dropout(State& state) {
  const std::vector<float> x = numbers(kTokens * kHidden);
  std::vector<float> y = x;
  std::vector<std::uint8_t> mask(x.size());
  for (auto _ : state) {
    best<Dropout<float>>().dropout(
        x.data(), 0.1, {1, 2, 3, 4}, y.data(), mask.data(), {kTokens, kHidden, kHidden, 0, 0});
  }
  rate(state, "elements", static_cast<double>(kTokens * kHidden));
}
BENCHMARK(dropout);

void adamw(State& state) {
  constexpr std::int64_t kParameters = 10'000'000;
  std::vector<float> p = numbers(kParameters);
  const std::vector<float> g = p;
  std::vector<float> m = p;
  std::vector<float> v(p.size(), 1.0F);
  AdamWSettings settings;
  settings.learning_rate = 1e-4;
  for (auto _ : state) {
    best<Optimizer<float>>().adamw(p.data(), g.data(), m.data(), v.data(), settings, kParameters);
  }
  rate(state, "B", 28.0 * kParameters);
}
BENCHMARK(adamw);

/// The three passes together.
void loss(State& state) {
  const LossShape shape{kTokens, state.range(0), 0, state.range(0)};
  std::vector<float> logits = numbers(shape.m * shape.local);
  const std::vector<std::int64_t> labels(kTokens, 7);
  std::vector<float> maximum(kTokens);
  std::vector<float> sum(kTokens);
  std::vector<float> target(kTokens);
  float total = 0;
  const Loss<float>& kernels = best<Loss<float>>();
  for (auto _ : state) {
    kernels.local_max(logits.data(), maximum.data(), shape);
    kernels.local_sums(
        logits.data(), maximum.data(), labels.data(), sum.data(), target.data(), shape);
    kernels.finish(logits.data(),
                   {maximum.data(), sum.data(), target.data()},
                   labels.data(),
                   {1.0 / kTokens, 1.0 / kTokens, false},
                   &total,
                   logits.data(),
                   shape);
  }
  rate(state, "B", 16.0 * static_cast<double>(shape.m * shape.local));
}
BENCHMARK(loss)->Arg(256)->Arg(50304);

}  // namespace

BENCHMARK_MAIN();
