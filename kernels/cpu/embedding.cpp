#include "kernels/cpu/embedding.h"

#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

template <typename T>
void add_row(T* to, const T* from, std::int64_t h) {
  for_each_vector<T>(h, [=](auto get, auto put) { put(to, get(to) + get(from)); });
}

template <typename T>
void embedding(const std::int64_t* tokens, const T* weight, T* y, EmbeddingShape shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.h) * sizeof(T);
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const std::int64_t row = tokens[i] - shape.first;
    if (row >= 0 && row < shape.rows) {
      std::memcpy(y + i * shape.h, weight + row * shape.h, bytes);
    } else {
      std::memset(y + i * shape.h, 0, bytes);
    }
  }
}

template <typename T>
void embedding_grad(
    const T* dy, const std::int64_t* tokens, T* dweight, bool accumulate, EmbeddingShape shape) {
  if (!accumulate) {
    std::memset(dweight, 0, static_cast<std::size_t>(shape.rows * shape.h) * sizeof(T));
  }
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const std::int64_t row = tokens[i] - shape.first;
    if (row >= 0 && row < shape.rows) {
      add_row(dweight + row * shape.h, dy + i * shape.h, shape.h);
    }
  }
}

template <typename T>
void position(T* x, const T* weight, PositionShape shape) {
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const std::int64_t at = (shape.first_token + i) % shape.seq;
    add_row(x + i * shape.h, weight + at * shape.h, shape.h);
  }
}

template <typename T>
void position_grad(const T* dy, T* dweight, bool accumulate, PositionShape shape) {
  if (!accumulate) {
    std::memset(dweight, 0, static_cast<std::size_t>(shape.rows * shape.h) * sizeof(T));
  }
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const std::int64_t at = (shape.first_token + i) % shape.seq;
    add_row(dweight + at * shape.h, dy + i * shape.h, shape.h);
  }
}

template <typename T>
void turn(T* x, RopeTable<T> table, const RopeShape& shape, T direction) {
  const std::int64_t half = shape.heads.dim / 2;
  const std::int64_t turned = shape.heads.heads + shape.heads.kv_heads;
  for (std::int64_t i = 0; i < shape.m; ++i) {
    const std::int64_t at = (shape.first_token + i) % shape.seq * half;
    for (std::int64_t head = 0; head < turned; ++head) {
      T* first = x + i * shape.heads.width() + head * shape.heads.dim;
      T* second = first + half;
      for_each_vector<T>(half, [=](auto get, auto put) {
        const V<T> cosine = get(table.cosine + at);
        const V<T> sine = get(table.sine + at) * direction;
        const V<T> a = get(first);
        const V<T> b = get(second);
        put(first, a * cosine - b * sine);
        put(second, b * cosine + a * sine);
      });
    }
  }
}

template <typename T>
void rope(T* x, RopeTable<T> table, RopeShape shape) {
  turn(x, table, shape, T(1));
}

template <typename T>
void rope_grad(T* dx, RopeTable<T> table, RopeShape shape) {
  turn(dx, table, shape, T(-1));
}

}  // namespace

template <typename T>
struct Implementation<Embedding<T>> {
  static constexpr Embedding<T> table() {
    return {.embedding = embedding<T>,
            .embedding_grad = embedding_grad<T>,
            .position = position<T>,
            .position_grad = position_grad<T>,
            .rope = rope<T>,
            .rope_grad = rope_grad<T>};
  }
};
template const Embedding<float>& table();
template const Embedding<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
