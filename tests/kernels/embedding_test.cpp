#include "kernels/cpu/embedding.h"

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::best;
using kernels::cpu::Embedding;
using kernels::cpu::HeadShape;
using kernels::cpu::rope_table;
using kernels::cpu::RopeShape;

TEST_CASE("embeddings of a vocabulary cut over ranks add up to the whole, and so do gradients") {
  const Embedding<double>& kernels = best<Embedding<double>>();
  const std::vector<std::int64_t> tokens = {5, 0, 9, 5, 3};
  std::vector<double> weight = normal_numbers<double>(10 * 3, 1);
  const std::vector<double> dy = normal_numbers<double>(5 * 3, 2);
  const auto f = [&] {
    double total = 0;
    for (const std::int64_t first : {0, 5}) {
      std::vector<double> y(15, 99);
      kernels.embedding(tokens.data(), weight.data() + first * 3, y.data(), {5, 5, 3, first});
      total += dot(y, dy);
    }
    return total;
  };
  std::vector<double> dweight(30, 99);
  for (const std::int64_t first : {0, 5}) {
    kernels.embedding_grad(
        dy.data(), tokens.data(), dweight.data() + first * 3, false, {5, 5, 3, first});
  }
  require_gradient(weight, dweight, f);
  std::vector<double> y = zeros<double>(15);
  kernels.embedding(tokens.data(), weight.data(), y.data(), {5, 10, 3, 0});
  CHECK(y[6] == weight[27]);  // token 9
}

TEST_CASE("positions repeat every sequence, and a shard of tokens begins inside one") {
  const Embedding<double>& kernels = best<Embedding<double>>();
  std::vector<double> weight = normal_numbers<double>(6 * 2, 1);  // 6 rows, 4 positions in use
  const std::vector<double> dy = normal_numbers<double>(5 * 2, 2);
  const auto f = [&] {
    std::vector<double> x = zeros<double>(10);
    kernels.position(x.data(), weight.data(), {5, 2, 4, 3, 6});
    CHECK(x[0] == weight[6]);  // token 3 of the batch
    CHECK(x[2] == weight[0]);  // token 4 is the second sequence's first
    return dot(x, dy);
  };
  std::vector<double> dweight = zeros<double>(12);
  kernels.position_grad(dy.data(), dweight.data(), false, {5, 2, 4, 3, 6});
  require_gradient(weight, dweight, f);
}

TEST_CASE("rotary positions turn pairs by position over theta's powers; backward turns them back") {
  const Embedding<double>& kernels = best<Embedding<double>>();
  const RopeShape shape{6, 3, 0, {2, 1, 4}};
  std::vector<double> cosine = zeros<double>(3 * 2);
  std::vector<double> sine = zeros<double>(3 * 2);
  rope_table<double>({3, 4, 10000, 1}, cosine.data(), sine.data());
  const std::vector<double> start = normal_numbers<double>(6 * 16, 1);
  std::vector<double> x = start;
  kernels.rope(x.data(), {cosine.data(), sine.data()}, shape);
  // Token 5 has position 2; its key starts at 8. Pair 1 is numbers 1 and 3, angle 2 / 100.
  const std::size_t key = 5 * 16 + 8;
  const double c = std::cos(0.02);
  const double s = std::sin(0.02);
  CHECK(x[key + 1] == Approx(start[key + 1] * c - start[key + 3] * s).epsilon(1e-14));
  CHECK(x[key + 3] == Approx(start[key + 3] * c + start[key + 1] * s).epsilon(1e-14));
  CHECK(x[key + 4] == start[key + 4]);  // values are not turned
  kernels.rope_grad(x.data(), {cosine.data(), sine.data()}, shape);
  CHECK(relative_error(x, start) < 1e-15);
}

}  // namespace
}  // namespace lockstep
