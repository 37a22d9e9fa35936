#include "kernels/cpu/attention.h"

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::Attention;
using kernels::cpu::attention;
using kernels::cpu::attention_grad;
using kernels::cpu::AttentionDropout;
using kernels::cpu::AttentionSaved;
using kernels::cpu::AttentionShape;
using kernels::cpu::best;
using kernels::cpu::flash_workspace;
using kernels::cpu::HeadShape;
using kernels::cpu::kernels_at;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct Sizes {
  std::int64_t tokens;
  std::int64_t queries;
  std::int64_t fused;
  std::int64_t scores;
};

Sizes sizes_of(const AttentionShape& s) {
  const std::int64_t tokens = s.batch * s.seq;
  return {tokens,
          tokens * s.heads.query_width(),
          tokens * s.heads.width(),
          s.batch * s.heads.heads * s.seq * s.seq};
}

/// softmax(q k^T / sqrt(dim)) v, by its definition, one query at a time.
std::vector<double> naive(const std::vector<double>& qkv, const AttentionShape& s) {
  const HeadShape& heads = s.heads;
  std::vector<double> y = zeros<double>(sizes_of(s).queries);
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t h = 0; h < heads.heads; ++h) {
      const std::int64_t group = h * heads.kv_heads / heads.heads;
      for (std::int64_t q = 0; q < s.seq; ++q) {
        const double* query = &qkv[index((b * s.seq + q) * heads.width() + h * heads.dim)];
        std::vector<double> weight;
        double total = 0;
        const std::int64_t begin = s.window > 0 ? std::max<std::int64_t>(0, q - s.window + 1) : 0;
        for (std::int64_t k = begin; k <= q; ++k) {
          const double* key = &qkv[index((b * s.seq + k) * heads.width() + heads.query_width() +
                                         group * heads.dim)];
          double score = 0;
          for (std::int64_t d = 0; d < heads.dim; ++d) {
            score += query[d] * key[d];
          }
          weight.push_back(std::exp(score / std::sqrt(static_cast<double>(heads.dim))));
          total += weight.back();
        }
        for (std::int64_t k = begin; k <= q; ++k) {
          const double* value = &qkv[index((b * s.seq + k) * heads.width() + heads.query_width() +
                                           heads.kv_width() + group * heads.dim)];
          for (std::int64_t d = 0; d < heads.dim; ++d) {
            y[index((b * s.seq + q) * heads.query_width() + h * heads.dim + d)] +=
                weight[index(k - begin)] / total * value[d];
          }
        }
      }
    }
  }
  return y;
}

/// Sequences of all kinds of tails: shorter than a tile, not multiples of it, several tiles;
/// grouped keys; head dimensions that are and are not multiples of a vector; a sliding window.
const std::vector<AttentionShape> kShapes = {
    {2, 5, {2, 2, 4}, 0},
    {1, 64, {1, 1, 16}, 0},
    {2, 70, {4, 2, 10}, 0},
    {1, 200, {6, 2, 32}, 0},
    {1, 150, {2, 1, 8}, 40},
    {1, 129, {2, 2, 24}, 1},
};

template <typename T>
std::vector<T> flash(const std::vector<T>& qkv, std::vector<T>& lse, const AttentionShape& shape) {
  std::vector<T> y = zeros<T>(sizes_of(shape).queries);
  std::vector<T> workspace = zeros<T>(flash_workspace(shape));
  lse = zeros<T>(shape.batch * shape.heads.heads * shape.seq);
  best<Attention<T>>().flash(qkv.data(), y.data(), lse.data(), workspace.data(), shape);
  return y;
}

template <typename T>
std::vector<T> flash_grad(const std::vector<T>& dy,
                          const std::vector<T>& qkv,
                          const AttentionShape& shape) {
  std::vector<T> lse;
  const std::vector<T> y = flash(qkv, lse, shape);
  std::vector<T> workspace = zeros<T>(flash_workspace(shape));
  std::vector<T> dqkv = zeros<T>(sizes_of(shape).fused);
  best<Attention<T>>().flash_grad(
      dy.data(), {qkv.data(), y.data(), lse.data()}, dqkv.data(), workspace.data(), shape);
  return dqkv;
}

TEST_CASE("plain and flash attention equal the definition of attention") {
  for (const AttentionShape& shape : kShapes) {
    const Sizes sizes = sizes_of(shape);
    INFO("seq " << shape.seq << ", dim " << shape.heads.dim << ", window " << shape.window);
    const std::vector<double> qkv = normal_numbers<double>(sizes.fused, 1);
    const std::vector<double> exact = naive(qkv, shape);
    std::vector<double> lse;
    CHECK(relative_error(flash(qkv, lse, shape), exact) < 1e-13);
    std::vector<double> y = zeros<double>(sizes.queries);
    std::vector<double> probabilities = zeros<double>(sizes.scores);
    attention(qkv.data(), y.data(), AttentionSaved<double>{probabilities.data()}, {}, shape);
    CHECK(relative_error(y, exact) < 1e-13);
    std::vector<float> lse32;
    CHECK(relative_error(flash(converted<float>(qkv), lse32, shape), exact) < 2e-6);
    CHECK(relative_error(lse32, lse) < 1e-6);
  }
}

TEST_CASE("the gradient of flash attention matches finite differences") {
  for (const AttentionShape& shape : kShapes) {
    INFO("seq " << shape.seq << ", dim " << shape.heads.dim << ", window " << shape.window);
    std::vector<double> qkv = normal_numbers<double>(sizes_of(shape).fused, 1);
    const std::vector<double> dy = normal_numbers<double>(sizes_of(shape).queries, 2);
    const std::vector<double> dqkv = flash_grad(dy, qkv, shape);
    std::vector<double> lse;
    require_gradient(qkv, dqkv, [&] { return dot(flash(qkv, lse, shape), dy); });
    const std::vector<float> single =
        flash_grad(converted<float>(dy), converted<float>(qkv), shape);
    CHECK(relative_error(single, dqkv) < 4e-6);
  }
}

TEST_CASE("the gradient of plain attention matches finite differences, with and without dropout") {
  for (const double probability : {0.0, 0.3}) {
    const AttentionShape shape{2, 9, {4, 2, 6}, 0};
    const Sizes sizes = sizes_of(shape);
    std::vector<double> qkv = normal_numbers<double>(sizes.fused, 1);
    const std::vector<double> dy = normal_numbers<double>(sizes.queries, 2);
    std::vector<double> y = zeros<double>(sizes.queries);
    std::vector<double> probabilities = zeros<double>(sizes.scores);
    std::vector<double> dropped = zeros<double>(sizes.scores);
    std::vector<std::uint8_t> mask(index(sizes.scores));
    AttentionSaved<double> saved{probabilities.data()};
    if (probability > 0) {
      saved.mask = mask.data();
      saved.dropped = dropped.data();
    }
    const AttentionDropout dropout{probability, {7, 1, 2, 3}, 4, 0};
    const auto f = [&] {
      attention(qkv.data(), y.data(), saved, dropout, shape);
      return dot(y, dy);
    };
    f();
    std::vector<double> dqkv = zeros<double>(sizes.fused);
    std::vector<double> workspace = zeros<double>(shape.seq * shape.seq);
    attention_grad(qkv.data(), saved, {dy.data(), dqkv.data(), workspace.data()}, dropout, shape);
    require_gradient(qkv, dqkv, f);
  }
}

TEST_CASE("a rank's heads and a sequence alone give the bits that the whole gives") {
  const AttentionShape whole{2, 70, {4, 4, 16}, 0};
  const std::vector<float> qkv = normal_numbers<float>(sizes_of(whole).fused, 3);
  std::vector<float> lse;
  const std::vector<float> y = flash(qkv, lse, whole);
  // The second sequence, heads 2 and 3.
  const AttentionShape part{1, 70, {2, 2, 16}, 0};
  std::vector<float> own;
  for (std::int64_t token = 70; token < 140; ++token) {
    for (std::int64_t third = 0; third < 3; ++third) {
      const auto begin = qkv.begin() + token * 192 + third * 64 + 32;
      own.insert(own.end(), begin, begin + 32);
    }
  }
  const std::vector<float> alone = flash(own, lse, part);
  for (std::int64_t token = 0; token < 70; ++token) {
    for (std::int64_t j = 0; j < 32; ++j) {
      REQUIRE(alone[index(token * 32 + j)] == y[index((70 + token) * 64 + 32 + j)]);
    }
  }
}

TEST_CASE("every instruction set's flash attention is within rounding of the others") {
  const AttentionShape shape{1, 100, {2, 1, 32}, 0};
  const std::vector<double> qkv = normal_numbers<double>(sizes_of(shape).fused, 4);
  const std::vector<double> exact = naive(qkv, shape);
  for (const auto level : levels_here()) {
    std::vector<double> y = zeros<double>(sizes_of(shape).queries);
    std::vector<double> lse = zeros<double>(200);
    std::vector<double> workspace = zeros<double>(flash_workspace(shape));
    kernels_at<Attention<double>>(level).flash(
        qkv.data(), y.data(), lse.data(), workspace.data(), shape);
    CHECK(relative_error(y, exact) < 1e-13);
  }
}

}  // namespace
}  // namespace lockstep
