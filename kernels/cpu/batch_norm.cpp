#include "kernels/cpu/batch_norm.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

/// Channels are taken in strips of this many, each with its numbers on the stack.
constexpr std::int64_t kStrip = 64;

template <typename Body>
void for_each_strip(std::int64_t channels, Body body) {
  for (std::int64_t first = 0; first < channels; first += kStrip) {
    body(first, channels - first < kStrip ? channels - first : kStrip);
  }
}

/// Mean and 1 / standard deviation of one channel, from sums over all ranks.
struct Channel {
  double mean = 0;
  double variance = 0;
  double scale = 0;
};

template <typename T>
Channel channel_of(const T* sums, std::int64_t j, const BatchNormShape& shape) {
  const auto count = static_cast<double>(sums[2 * shape.c]);
  Channel channel;
  channel.mean = static_cast<double>(sums[j]) / count;
  const double variance =
      static_cast<double>(sums[shape.c + j]) / count - channel.mean * channel.mean;
  channel.variance = variance > 0 ? variance : 0;
  channel.scale = 1 / __builtin_sqrt(channel.variance + shape.epsilon);
  return channel;
}

template <typename T>
void batch_sums(const T* x, T* sums, BatchNormShape shape) {
  for_each_strip(shape.c, [&](std::int64_t first, std::int64_t count) {
    double total[kStrip] = {};
    double squares[kStrip] = {};
    for (std::int64_t row = 0; row < shape.m; ++row) {
      for (std::int64_t j = 0; j < count; ++j) {
        const auto value = static_cast<double>(x[row * shape.c + first + j]);
        total[j] += value;
        squares[j] += value * value;
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      sums[first + j] = static_cast<T>(total[j]);
      sums[shape.c + first + j] = static_cast<T>(squares[j]);
    }
  });
  sums[2 * shape.c] = static_cast<T>(shape.m);
}

template <typename T>
void move_running(const T* sums, T* running, const BatchNormShape& shape) {
  const double momentum = shape.momentum;
  const auto count = static_cast<double>(sums[2 * shape.c]);
  for (std::int64_t j = 0; j < shape.c; ++j) {
    const Channel channel = channel_of(sums, j, shape);
    const double unbiased = count > 1 ? channel.variance * count / (count - 1) : channel.variance;
    T& mean = running[j];
    T& variance = running[shape.c + j];
    mean = static_cast<T>((1 - momentum) * static_cast<double>(mean) + momentum * channel.mean);
    variance = static_cast<T>((1 - momentum) * static_cast<double>(variance) + momentum * unbiased);
  }
}

/// y = (x - mean) factor + shift for one strip of channels.
template <typename T>
struct Affine {
  T mean[kStrip] = {};
  T factor[kStrip] = {};
  T shift[kStrip] = {};

  void apply(const T* x, T* y, std::int64_t first, std::int64_t n, const BatchNormShape& s) const {
    for (std::int64_t row = 0; row < s.m; ++row) {
      const std::int64_t at = row * s.c + first;
      for (std::int64_t j = 0; j < n; ++j) {
        y[at + j] = (x[at + j] - mean[j]) * factor[j] + shift[j];
      }
    }
  }
};

template <typename T>
void apply(const T* x,
           const T* sums,
           BatchNormParameters<T> parameters,
           T* y,
           T* running,
           BatchNormShape shape) {
  for_each_strip(shape.c, [&](std::int64_t first, std::int64_t count) {
    Affine<T> affine;
    for (std::int64_t j = 0; j < count; ++j) {
      const Channel channel = channel_of(sums, first + j, shape);
      const auto weight = static_cast<double>(parameters.weight[first + j]);
      affine.mean[j] = static_cast<T>(channel.mean);
      affine.factor[j] = static_cast<T>(channel.scale * weight);
      affine.shift[j] = parameters.bias[first + j];
    }
    affine.apply(x, y, first, count, shape);
  });
  if (running != nullptr) {
    move_running(sums, running, shape);
  }
}

template <typename T>
void evaluate(
    const T* x, const T* running, BatchNormParameters<T> parameters, T* y, BatchNormShape shape) {
  for_each_strip(shape.c, [&](std::int64_t first, std::int64_t count) {
    Affine<T> affine;
    for (std::int64_t j = 0; j < count; ++j) {
      const auto variance = static_cast<double>(running[shape.c + first + j]);
      const auto weight = static_cast<double>(parameters.weight[first + j]);
      affine.mean[j] = running[first + j];
      affine.factor[j] = static_cast<T>(weight / __builtin_sqrt(variance + shape.epsilon));
      affine.shift[j] = parameters.bias[first + j];
    }
    affine.apply(x, y, first, count, shape);
  });
}

template <typename T>
void grad_sums(const T* dy, const T* x, const T* sums, T* gradient_sums, BatchNormShape shape) {
  for_each_strip(shape.c, [&](std::int64_t first, std::int64_t count) {
    double total[kStrip] = {};
    double along[kStrip] = {};
    double mean[kStrip] = {};
    for (std::int64_t j = 0; j < count; ++j) {
      mean[j] = channel_of(sums, first + j, shape).mean;
    }
    for (std::int64_t row = 0; row < shape.m; ++row) {
      const std::int64_t at = row * shape.c + first;
      for (std::int64_t j = 0; j < count; ++j) {
        const auto gradient = static_cast<double>(dy[at + j]);
        total[j] += gradient;
        along[j] += gradient * (static_cast<double>(x[at + j]) - mean[j]);
      }
    }
    for (std::int64_t j = 0; j < count; ++j) {
      gradient_sums[first + j] = static_cast<T>(total[j]);
      gradient_sums[shape.c + first + j] = static_cast<T>(along[j]);
    }
  });
}

/// dx = weight scale (dy - mean(dy) - (x - mean) scale^2 mean(dy (x - mean))).
template <typename T>
void grad_apply(const T* dy,
                BatchNormSaved<T> saved,
                BatchNormSums<T> gradient_sums,
                const T* weight,
                BatchNormGradients<T> out,
                BatchNormShape shape) {
  const T* x = saved.x;
  const T* sums = saved.sums;
  const T* local = gradient_sums.local;
  const T* global = gradient_sums.global;
  const auto count = static_cast<double>(sums[2 * shape.c]);
  for (std::int64_t j = 0; j < shape.c; ++j) {
    const Channel channel = channel_of(sums, j, shape);
    const auto dweight = static_cast<T>(static_cast<double>(local[shape.c + j]) * channel.scale);
    const double square = channel.scale * channel.scale;
    const auto mean_gradient = static_cast<T>(static_cast<double>(global[j]) / count);
    const auto slope = static_cast<T>(static_cast<double>(global[shape.c + j]) / count * square);
    const auto factor = static_cast<T>(static_cast<double>(weight[j]) * channel.scale);
    const auto mean = static_cast<T>(channel.mean);
    for (std::int64_t row = 0; row < shape.m; ++row) {
      const std::int64_t at = row * shape.c + j;
      out.dx[at] = factor * (dy[at] - mean_gradient - (x[at] - mean) * slope);
    }
    out.dweight[j] = out.accumulate ? out.dweight[j] + dweight : dweight;
    out.dbias[j] = out.accumulate ? out.dbias[j] + local[j] : local[j];
  }
}

}  // namespace

template <typename T>
struct Implementation<BatchNorm<T>> {
  static constexpr BatchNorm<T> table() {
    return {.sums = batch_sums<T>,
            .apply = apply<T>,
            .evaluate = evaluate<T>,
            .grad_sums = grad_sums<T>,
            .grad_apply = grad_apply<T>};
  }
};
template const BatchNorm<float>& table();
template const BatchNorm<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
