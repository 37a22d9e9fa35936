#include "kernels/cpu/norm.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
void layer(const T* x, NormParameters<T> parameters, T* y, T* statistics, NormShape shape) {
  const std::int64_t h = shape.h;
  for (std::int64_t row = 0; row < shape.m; ++row, x += h, y += h) {
    const T mean = sum<T>(h, [&](auto get) { return get(x); }) / static_cast<T>(h);
    const T variance = sum<T>(h,
                              [&](auto get) {
                                const V<T> centred = get(x) - mean;
                                return centred * centred;
                              }) /
                       static_cast<T>(h);
    const T scale = T(1) / std::sqrt(variance + static_cast<T>(parameters.epsilon));
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = scale;
    for_each_vector<T>(h, [&](auto get, auto put) {
      const V<T> normed = (get(x) - mean) * scale * get(parameters.weight);
      put(y, parameters.bias == nullptr ? normed : normed + get(parameters.bias));
    });
  }
}

/// One row of dweight (h) and dbias (h), which rows are added to from first to last.
template <typename T>
void clear_targets(const NormGradients<T>& out, std::int64_t h) {
  if (out.accumulate) {
    return;
  }
  std::memset(out.dweight, 0, static_cast<std::size_t>(h) * sizeof(T));
  if (out.dbias != nullptr) {
    std::memset(out.dbias, 0, static_cast<std::size_t>(h) * sizeof(T));
  }
}

/// dx = scale (g - mean(g) - normed mean(g normed)), g = dy weight.
template <typename T>
void layer_grad(
    const T* dy, NormSaved<T> saved, const T* weight, NormGradients<T> out, NormShape shape) {
  const std::int64_t h = shape.h;
  clear_targets(out, h);
  for (std::int64_t row = 0; row < shape.m; ++row) {
    const T* x = saved.x + row * h;
    const T* d = dy + row * h;
    T* dx = out.dx + row * h;
    const T mean = saved.statistics[2 * row];
    const T scale = saved.statistics[2 * row + 1];
    const T g = sum<T>(h, [&](auto get) { return get(d) * get(weight); }) / static_cast<T>(h);
    const T along =
        sum<T>(h, [&](auto get) { return get(d) * get(weight) * ((get(x) - mean) * scale); }) /
        static_cast<T>(h);
    for_each_vector<T>(h, [&](auto get, auto put) {
      const V<T> gradient = get(d);
      const V<T> normed = (get(x) - mean) * scale;
      put(out.dweight, get(out.dweight) + gradient * normed);
      if (out.dbias != nullptr) {
        put(out.dbias, get(out.dbias) + gradient);
      }
      put(dx, scale * (gradient * get(weight) - g - normed * along));
    });
  }
}

template <typename T>
T rms_row(const T* x, const T* weight, double epsilon, T* y, std::int64_t h) {
  const T mean = sum<T>(h, [&](auto get) { return get(x) * get(x); }) / static_cast<T>(h);
  const T scale = T(1) / std::sqrt(mean + static_cast<T>(epsilon));
  for_each_vector<T>(h, [&](auto get, auto put) { put(y, get(x) * scale * get(weight)); });
  return scale;
}

template <typename T>
struct RmsRow {
  const T* x = nullptr;
  const T* weight = nullptr;
  T scale = 0;  ///< 1 / root mean square
};

/// dx = scale (g - normed mean(g normed)), g = dy weight, normed = x scale.
template <typename T>
void rms_row_grad(const T* d, const RmsRow<T>& row, T* dx, T* dweight, std::int64_t h) {
  const T* x = row.x;
  const T* weight = row.weight;
  const T scale = row.scale;
  const T along = sum<T>(h, [&](auto get) { return get(d) * get(weight) * (get(x) * scale); }) /
                  static_cast<T>(h);
  for_each_vector<T>(h, [&](auto get, auto put) {
    const V<T> gradient = get(d);
    const V<T> normed = get(x) * scale;
    put(dweight, get(dweight) + gradient * normed);
    put(dx, scale * (gradient * get(weight) - normed * along));
  });
}

template <typename T>
void rms(const T* x, NormParameters<T> parameters, T* y, T* statistics, NormShape shape) {
  const std::int64_t h = shape.h;
  for (std::int64_t row = 0; row < shape.m; ++row) {
    statistics[row] = rms_row(x + row * h, parameters.weight, parameters.epsilon, y + row * h, h);
  }
}

template <typename T>
void rms_grad(
    const T* dy, NormSaved<T> saved, const T* weight, NormGradients<T> out, NormShape shape) {
  const std::int64_t h = shape.h;
  clear_targets(out, h);
  for (std::int64_t row = 0; row < shape.m; ++row) {
    const std::int64_t at = row * h;
    rms_row_grad(
        dy + at, {saved.x + at, weight, saved.statistics[row]}, out.dx + at, out.dweight, h);
  }
}

template <typename T>
void heads(const T* x,
           NormParameters<T> parameters,
           T* y,
           T* statistics,
           std::int64_t m,
           HeadShape shape) {
  const std::int64_t normed = shape.heads + shape.kv_heads;
  for (std::int64_t row = 0; row < m; ++row, x += shape.width(), y += shape.width()) {
    for (std::int64_t head = 0; head < normed; ++head) {
      const T* weight = head < shape.heads ? parameters.weight : parameters.key_weight;
      const std::int64_t at = head * shape.dim;
      statistics[row * normed + head] =
          rms_row(x + at, weight, parameters.epsilon, y + at, shape.dim);
    }
    const std::int64_t values = normed * shape.dim;
    std::memmove(y + values, x + values, static_cast<std::size_t>(shape.kv_width()) * sizeof(T));
  }
}

template <typename T>
void heads_grad(const T* dy,
                NormSaved<T> saved,
                NormParameters<T> parameters,
                NormGradients<T> out,
                std::int64_t m,
                HeadShape shape) {
  clear_targets(out, shape.dim);
  if (!out.accumulate) {
    std::memset(out.dkey_weight, 0, static_cast<std::size_t>(shape.dim) * sizeof(T));
  }
  const std::int64_t normed = shape.heads + shape.kv_heads;
  for (std::int64_t row = 0; row < m; ++row) {
    const std::int64_t start = row * shape.width();
    for (std::int64_t head = 0; head < normed; ++head) {
      const bool query = head < shape.heads;
      const std::int64_t at = start + head * shape.dim;
      rms_row_grad(dy + at,
                   {saved.x + at,
                    query ? parameters.weight : parameters.key_weight,
                    saved.statistics[row * normed + head]},
                   out.dx + at,
                   query ? out.dweight : out.dkey_weight,
                   shape.dim);
    }
    const std::int64_t values = start + normed * shape.dim;
    std::memmove(
        out.dx + values, dy + values, static_cast<std::size_t>(shape.kv_width()) * sizeof(T));
  }
}

}  // namespace

template <typename T>
struct Implementation<Norm<T>> {
  static constexpr Norm<T> table() {
    return {.layer = layer<T>,
            .layer_grad = layer_grad<T>,
            .rms = rms<T>,
            .rms_grad = rms_grad<T>,
            .heads = heads<T>,
            .heads_grad = heads_grad<T>};
  }
};
template const Norm<float>& table();
template const Norm<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
