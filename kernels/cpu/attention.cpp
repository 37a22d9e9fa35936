// Flash attention works on transposed tiles: rows are keys, columns (vector lanes) are queries. So
// maxima and sums over keys are vertical, and keys and values are read where they lie.
#include "kernels/cpu/attention.h"

#include "kernels/cpu/block_product.h"
#include "kernels/cpu/simd.h"

namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL {
namespace {

constexpr std::int64_t kTile = 64;          ///< queries of a tile; most keys of a tile
constexpr std::int64_t kDiagonalTile = 32;  ///< keys of a tile on the diagonal: less is wasted
static_assert(kTile <= kMostInner);

template <typename T>
T minus_infinity() {
  return -static_cast<T>(__builtin_inff());
}

/// One head of one sequence: pointers to its first row, and what rows are apart.
template <typename T>
struct HeadRows {
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  std::int64_t ld = 0;   ///< of q, k, v
  std::int64_t ldy = 0;  ///< of y and dy
};

/// Queries [first, first + count) and the scratch of their tile, all (…, kTile) row-major.
template <typename T>
struct QueryTile {
  std::int64_t first = 0;
  std::int64_t count = 0;
  T* query = nullptr;    ///< (dim, kTile): queries times the scale, transposed
  T* dy = nullptr;       ///< (dim, kTile), backward only
  T* out = nullptr;      ///< (dim, kTile): the output or dq, transposed
  T* scores = nullptr;   ///< (kTile keys, kTile)
  T* slope = nullptr;    ///< (kTile keys, kTile), backward only
  T* maximum = nullptr;  ///< (kTile)
  T* sum = nullptr;      ///< (kTile)
};

/// Keys [first, first + count) against the queries from column `begin` on.
struct KeyTile {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t begin = 0;
};

template <typename T>
QueryTile<T> carve(T* workspace, const AttentionShape& shape) {
  const std::int64_t strip = shape.heads.dim * kTile;
  QueryTile<T> tile;
  tile.query = workspace;
  tile.dy = tile.query + strip;
  tile.out = tile.dy + strip;
  tile.scores = tile.out + strip;
  tile.slope = tile.scores + kTile * kTile;
  tile.maximum = tile.slope + kTile * kTile;
  tile.sum = tile.maximum + kTile;
  return tile;
}

template <typename T>
HeadRows<T> rows_of(const T* qkv, const AttentionShape& shape, std::int64_t b, std::int64_t head) {
  const HeadShape& heads = shape.heads;
  const std::int64_t group = head / (heads.heads / heads.kv_heads);
  const T* row = qkv + b * shape.seq * heads.width();
  HeadRows<T> rows;
  rows.q = row + head * heads.dim;
  rows.k = row + heads.query_width() + group * heads.dim;
  rows.v = rows.k + heads.kv_width();
  rows.ld = heads.width();
  rows.ldy = heads.query_width();
  return rows;
}

template <typename T>
T scale_of(const AttentionShape& shape) {
  return static_cast<T>(1 / __builtin_sqrt(static_cast<double>(shape.heads.dim)));
}

/// to (dim, kTile) = factor from^T, zero in the columns of queries that do not exist. In strips as
/// wide as a cache line of `from`, so that stores are contiguous and lines are read once.
template <typename T>
void transpose_in(
    const T* from, std::int64_t ld, T factor, T* to, std::int64_t count, std::int64_t dim) {
  for (std::int64_t strip = 0; strip < dim; strip += kSumLanes<T>) {
    const std::int64_t end = strip + kSumLanes<T> < dim ? strip + kSumLanes<T> : dim;
    for (std::int64_t d = strip; d < end; ++d) {
      T* row = to + d * kTile;
      for (std::int64_t q = 0; q < count; ++q) {
        row[q] = from[q * ld + d] * factor;
      }
      for (std::int64_t q = count; q < kTile; ++q) {
        row[q] = 0;
      }
    }
  }
}

/// Calls body(KeyTile) for the tiles that some query of the tile sees, from the first key on.
template <typename T, typename Body>
void for_each_key_tile(const QueryTile<T>& tile, std::int64_t window, Body body) {
  const std::int64_t end = tile.first + tile.count;  // the last query sees keys before this
  std::int64_t key = 0;
  if (window > 0 && tile.first >= window) {
    key = (tile.first - window + 1) / kTile * kTile;
  }
  while (key < end) {
    const std::int64_t size = key < tile.first ? kTile : kDiagonalTile;
    const std::int64_t count = end - key < size ? end - key : size;
    const std::int64_t hidden = key > tile.first ? key - tile.first : 0;
    body(KeyTile{key, count, hidden / kLanes<T> * kLanes<T>});
    key += count;
  }
}

/// scores (keys, queries) = keys times queries, minus infinity where the query must not look.
template <typename T>
void score(const HeadRows<T>& rows,
           const QueryTile<T>& tile,
           const KeyTile& keys,
           const AttentionShape& shape) {
  block_product<T>({rows.k + keys.first * rows.ld, rows.ld, 1},
                   {tile.query + keys.begin, kTile},
                   {tile.scores + keys.begin, kTile},
                   {keys.count, kTile - keys.begin, shape.heads.dim},
                   false);
  for (std::int64_t r = 0; r < keys.count; ++r) {
    T* row = tile.scores + r * kTile;
    const std::int64_t diagonal = keys.first + r - tile.first;  // the first query that sees it
    for (std::int64_t q = keys.begin; q < diagonal; ++q) {
      row[q] = minus_infinity<T>();
    }
    const std::int64_t last = shape.window > 0 ? diagonal + shape.window : kTile;
    for (std::int64_t q = last < keys.begin ? keys.begin : last; q < kTile; ++q) {
      row[q] = minus_infinity<T>();
    }
  }
}

/// Scores become exponentials under the new maximum; earlier sums and outputs are scaled to it.
template <typename T>
void fold_softmax(const QueryTile<T>& tile, const KeyTile& keys, std::int64_t dim) {
  for (std::int64_t q = keys.begin; q < kTile; q += kLanes<T>) {
    const V<T> before = load(tile.maximum + q);
    V<T> top = before;
    for (std::int64_t r = 0; r < keys.count; ++r) {
      top = maximum<T>(top, load(tile.scores + r * kTile + q));
    }
    // A query that has seen no key yet (sliding window) has no maximum.
    const V<T> base = top == minus_infinity<T>() ? V<T>{} : top;
    const V<T> shrink = exponential(before - base);
    V<T> total = load(tile.sum + q) * shrink;
    for (std::int64_t r = 0; r < keys.count; ++r) {
      const V<T> weight = exponential(load(tile.scores + r * kTile + q) - base);
      store(tile.scores + r * kTile + q, weight);
      total += weight;
    }
    store(tile.maximum + q, top);
    store(tile.sum + q, total);
    for (std::int64_t d = 0; d < dim; ++d) {
      store(tile.out + d * kTile + q, load(tile.out + d * kTile + q) * shrink);
    }
  }
}

template <typename T>
void flash_head(
    const HeadRows<T>& rows, QueryTile<T> tile, T* y, T* log_sum_exp, const AttentionShape& shape) {
  const std::int64_t dim = shape.heads.dim;
  for (tile.first = 0; tile.first < shape.seq; tile.first += kTile) {
    const std::int64_t rest = shape.seq - tile.first;
    tile.count = rest < kTile ? rest : kTile;
    transpose_in(
        rows.q + tile.first * rows.ld, rows.ld, scale_of<T>(shape), tile.query, tile.count, dim);
    std::memset(tile.out, 0, static_cast<std::size_t>(dim * kTile) * sizeof(T));
    for (std::int64_t q = 0; q < kTile; ++q) {
      tile.maximum[q] = minus_infinity<T>();
      tile.sum[q] = 0;
    }
    for_each_key_tile(tile, shape.window, [&](const KeyTile& keys) {
      score(rows, tile, keys, shape);
      fold_softmax(tile, keys, dim);
      block_product<T>({rows.v + keys.first * rows.ld, 1, rows.ld},
                       {tile.scores + keys.begin, kTile},
                       {tile.out + keys.begin, kTile},
                       {dim, kTile - keys.begin, keys.count},
                       true);
    });
    for (std::int64_t q = 0; q < tile.count; ++q) {
      T* to = y + (tile.first + q) * rows.ldy;
      const T inverse = T(1) / tile.sum[q];
      for (std::int64_t d = 0; d < dim; ++d) {
        to[d] = tile.out[d * kTile + q] * inverse;
      }
      log_sum_exp[tile.first + q] =
          tile.maximum[q] + static_cast<T>(__builtin_log(static_cast<double>(tile.sum[q])));
    }
  }
}

template <typename T>
void flash(const T* qkv, T* y, T* log_sum_exp, T* workspace, const AttentionShape& shape) {
  const HeadShape& heads = shape.heads;
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t head = 0; head < heads.heads; ++head) {
      flash_head(rows_of(qkv, shape, b, head),
                 carve(workspace, shape),
                 y + b * shape.seq * heads.query_width() + head * heads.dim,
                 log_sum_exp + (b * heads.heads + head) * shape.seq,
                 shape);
    }
  }
}

/// Gradients and saved rows of one head.
template <typename T>
struct HeadGradient {
  const T* dy = nullptr;
  const T* y = nullptr;
  const T* log_sum_exp = nullptr;
  T* dq = nullptr;
  T* dk = nullptr;
  T* dv = nullptr;
};

/// scores become probabilities, slope the gradient of the scores: p (dp - delta) scale.
template <typename T>
void backward_softmax(const QueryTile<T>& tile, const KeyTile& keys, T scale) {
  for (std::int64_t q = keys.begin; q < kTile; q += kLanes<T>) {
    const V<T> log_sum_exp = load(tile.maximum + q);
    const V<T> delta = load(tile.sum + q);
    for (std::int64_t r = 0; r < keys.count; ++r) {
      T* score_at = tile.scores + r * kTile + q;
      T* slope_at = tile.slope + r * kTile + q;
      const V<T> p = exponential(load(score_at) - log_sum_exp);
      store(score_at, p);
      store(slope_at, p * (load(slope_at) - delta) * scale);
    }
  }
}

/// All gradients that one tile of keys and one tile of queries give each other.
template <typename T>
void backward_tile(const HeadRows<T>& rows,
                   const QueryTile<T>& tile,
                   const KeyTile& keys,
                   const HeadGradient<T>& gradient,
                   const AttentionShape& shape) {
  const std::int64_t dim = shape.heads.dim;
  const std::int64_t at = keys.first * rows.ld;
  const std::int64_t queries = tile.count - keys.begin;
  const std::int64_t query = tile.first + keys.begin;
  score(rows, tile, keys, shape);
  block_product<T>({rows.v + at, rows.ld, 1},
                   {tile.dy + keys.begin, kTile},
                   {tile.slope + keys.begin, kTile},
                   {keys.count, kTile - keys.begin, dim},
                   false);
  backward_softmax(tile, keys, scale_of<T>(shape));
  block_product<T>({tile.scores + keys.begin, kTile, 1},
                   {gradient.dy + query * rows.ldy, rows.ldy},
                   {gradient.dv + at, rows.ld},
                   {keys.count, dim, queries},
                   true);
  block_product<T>({tile.slope + keys.begin, kTile, 1},
                   {rows.q + query * rows.ld, rows.ld},
                   {gradient.dk + at, rows.ld},
                   {keys.count, dim, queries},
                   true);
  block_product<T>({rows.k + at, 1, rows.ld},
                   {tile.slope + keys.begin, kTile},
                   {tile.out + keys.begin, kTile},
                   {dim, kTile - keys.begin, keys.count},
                   true);
}

/// delta = sum of dy y per query; both per-query rows are 0 for queries that do not exist.
template <typename T>
void load_statistics(const QueryTile<T>& tile,
                     const HeadGradient<T>& gradient,
                     std::int64_t ldy,
                     std::int64_t dim) {
  for (std::int64_t q = 0; q < kTile; ++q) {
    const std::int64_t at = (tile.first + q) * ldy;
    const bool exists = q < tile.count;
    tile.maximum[q] = exists ? gradient.log_sum_exp[tile.first + q] : T(0);
    tile.sum[q] =
        exists ? sum<T>(dim, [&](auto get) { return get(gradient.dy + at) * get(gradient.y + at); })
               : T(0);
  }
}

template <typename T>
void flash_grad_head(const HeadRows<T>& rows,
                     QueryTile<T> tile,
                     const HeadGradient<T>& gradient,
                     const AttentionShape& shape) {
  const std::int64_t dim = shape.heads.dim;
  for (tile.first = 0; tile.first < shape.seq; tile.first += kTile) {
    const std::int64_t rest = shape.seq - tile.first;
    tile.count = rest < kTile ? rest : kTile;
    transpose_in(
        rows.q + tile.first * rows.ld, rows.ld, scale_of<T>(shape), tile.query, tile.count, dim);
    transpose_in(gradient.dy + tile.first * rows.ldy, rows.ldy, T(1), tile.dy, tile.count, dim);
    load_statistics(tile, gradient, rows.ldy, dim);
    std::memset(tile.out, 0, static_cast<std::size_t>(dim * kTile) * sizeof(T));
    for_each_key_tile(tile, shape.window, [&](const KeyTile& keys) {
      backward_tile(rows, tile, keys, gradient, shape);
    });
    for (std::int64_t q = 0; q < tile.count; ++q) {
      T* to = gradient.dq + (tile.first + q) * rows.ld;
      for (std::int64_t d = 0; d < dim; ++d) {
        to[d] = tile.out[d * kTile + q];
      }
    }
  }
}

template <typename T>
void flash_grad(
    const T* dy, FlashSaved<T> saved, T* dqkv, T* workspace, const AttentionShape& shape) {
  const HeadShape& heads = shape.heads;
  // Keys and values collect from all queries, and from all heads of their group.
  for (std::int64_t row = 0; row < shape.batch * shape.seq; ++row) {
    std::memset(dqkv + row * heads.width() + heads.query_width(),
                0,
                static_cast<std::size_t>(2 * heads.kv_width()) * sizeof(T));
  }
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t head = 0; head < heads.heads; ++head) {
      const HeadRows<T> rows = rows_of(saved.qkv, shape, b, head);
      const std::int64_t output = b * shape.seq * heads.query_width() + head * heads.dim;
      HeadGradient<T> gradient;
      gradient.dy = dy + output;
      gradient.y = saved.y + output;
      gradient.log_sum_exp = saved.log_sum_exp + (b * heads.heads + head) * shape.seq;
      gradient.dq = dqkv + (rows.q - saved.qkv);
      gradient.dk = dqkv + (rows.k - saved.qkv);
      gradient.dv = dqkv + (rows.v - saved.qkv);
      flash_grad_head(rows, carve(workspace, shape), gradient, shape);
    }
  }
}

struct Larger {
  template <typename A>
  A operator()(A a, A b) const {
    return a > b ? a : b;
  }
};

template <typename T>
void softmax(T* scores, T scale, std::int64_t seq, std::int64_t window) {
  for (std::int64_t q = 0; q < seq; ++q) {
    T* row = scores + q * seq;
    const std::int64_t begin = window > 0 && q >= window ? q - window + 1 : 0;
    const std::int64_t count = q + 1 - begin;
    T* visible = row + begin;
    const T top =
        reduce<T>(count, minus_infinity<T>(), Larger{}, [=](auto get) { return get(visible); });
    const auto weight = [=](V<T> score) { return exponential((score - top) * scale); };
    for_each_vector<T>(count, [=](auto get, auto put) { put(visible, weight(get(visible))); });
    const T inverse = T(1) / sum<T>(count, [=](auto get) { return get(visible); });
    for_each_vector<T>(count, [=](auto get, auto put) { put(visible, get(visible) * inverse); });
    std::memset(row, 0, static_cast<std::size_t>(begin) * sizeof(T));
    std::memset(row + q + 1, 0, static_cast<std::size_t>(seq - q - 1) * sizeof(T));
  }
}

template <typename T>
void softmax_grad(const T* probabilities, T* gradient, T scale, std::int64_t seq) {
  for (std::int64_t q = 0; q < seq; ++q) {
    const T* p = probabilities + q * seq;
    T* d = gradient + q * seq;
    const T mean = sum<T>(q + 1, [=](auto get) { return get(p) * get(d); });
    for_each_vector<T>(q + 1,
                       [=](auto get, auto put) { put(d, get(p) * (get(d) - mean) * scale); });
    std::memset(d + q + 1, 0, static_cast<std::size_t>(seq - q - 1) * sizeof(T));
  }
}

}  // namespace

template <typename T>
struct Implementation<Attention<T>> {
  static constexpr Attention<T> table() {
    return {.flash = flash<T>,
            .flash_grad = flash_grad<T>,
            .softmax = softmax<T>,
            .softmax_grad = softmax_grad<T>};
  }
};
template const Attention<float>& table();
template const Attention<double>& table();

}  // namespace lockstep::kernels::cpu::LOCKSTEP_LEVEL
