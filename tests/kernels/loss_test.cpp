#include "kernels/cpu/loss.h"

#include <algorithm>

#include "tests/kernels/numeric.h"

namespace lockstep {
namespace {

using kernels::cpu::best;
using kernels::cpu::Loss;
using kernels::cpu::LossFactors;
using kernels::cpu::LossRows;
using kernels::cpu::LossShape;

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kVocabulary = 43;
const std::vector<std::int64_t> kLabels = {0, 42, 17, -100, 21, 22};

double naive_loss(const std::vector<double>& logits) {
  double total = 0;
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t label = kLabels[static_cast<std::size_t>(row)];
    if (label < 0) {
      continue;
    }
    double sum = 0;
    for (std::int64_t j = 0; j < kVocabulary; ++j) {
      sum += std::exp(logits[static_cast<std::size_t>(row * kVocabulary + j)]);
    }
    total += std::log(sum) - logits[static_cast<std::size_t>(row * kVocabulary + label)];
  }
  return total / 5;
}

TEST_CASE("e^x in float is within 2 ulp of double, with its limits") {
  // One column: the sum of exponentials is one exponential.
  const LossShape one{1, 1, 0, 1};
  const std::int64_t label = 0;
  const auto exponential = [&](float x) {
    const float maximum = 0;
    float sum = 0;
    float target = 0;
    best<Loss<float>>().local_sums(&x, &maximum, &label, &sum, &target, one);
    return sum;
  };
  double worst = 0;
  for (double x = -87.3; x < 88.7; x += 0.00137) {
    const auto rounded = static_cast<float>(x);
    worst = std::max(worst, ulps(exponential(rounded), std::exp(static_cast<double>(rounded))));
  }
  INFO("worst " << worst << " ulp");
  CHECK(worst <= 2);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(exponential(0) == 1);
  CHECK(exponential(-infinity) == 0);
  CHECK(exponential(-200) == 0);
  CHECK(exponential(infinity) == infinity);
  CHECK(exponential(89) == infinity);
  CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}

/// The loss with the vocabulary, padded to 44, cut over `ranks`, as the plan's collectives do it.
/// Returns the loss; dlogits (rows, 44) are the ranks' gradients side by side.
template <typename T>
T cut_loss(const std::vector<T>& logits,
           std::int64_t ranks,
           const LossFactors& factors,
           std::vector<T>& dlogits) {
  const Loss<T>& kernels = best<Loss<T>>();
  const std::int64_t local = 44 / ranks;
  std::vector<std::vector<T>> shards;
  std::vector<T> maximum(kRows, -std::numeric_limits<T>::infinity());
  std::vector<T> sum(kRows);
  std::vector<T> target(kRows);
  std::vector<T> own(kRows);
  std::vector<T> own_target(kRows);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<T> shard(static_cast<std::size_t>(kRows * local), T(1e9));  // padding is no logit
    for (std::int64_t i = 0; i < kRows * local; ++i) {
      const std::int64_t column = rank * local + i % local;
      if (column < kVocabulary) {
        shard[static_cast<std::size_t>(i)] =
            logits[static_cast<std::size_t>(i / local * kVocabulary + column)];
      }
    }
    kernels.local_max(shard.data(), own.data(), {kRows, local, rank * local, kVocabulary});
    for (std::size_t row = 0; row < own.size(); ++row) {
      maximum[row] = std::max(maximum[row], own[row]);
    }
    shards.push_back(std::move(shard));
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    kernels.local_sums(shards[static_cast<std::size_t>(rank)].data(),
                       maximum.data(),
                       kLabels.data(),
                       own.data(),
                       own_target.data(),
                       {kRows, local, rank * local, kVocabulary});
    for (std::size_t row = 0; row < own.size(); ++row) {
      sum[row] += own[row];
      target[row] += own_target[row];
    }
  }
  T loss = 0;
  dlogits.assign(static_cast<std::size_t>(kRows * 44), 0);
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<T>& shard = shards[static_cast<std::size_t>(rank)];
    kernels.finish(shard.data(),
                   LossRows<T>{maximum.data(), sum.data(), target.data()},
                   kLabels.data(),
                   factors,
                   &loss,
                   shard.data(),
                   {kRows, local, rank * local, kVocabulary});
    for (std::int64_t i = 0; i < kRows * local; ++i) {
      dlogits[static_cast<std::size_t>(i / local * 44 + rank * local + i % local)] =
          shard[static_cast<std::size_t>(i)];
    }
  }
  return loss;
}

TEST_CASE(
    "the loss over a cut, padded vocabulary is the loss, and its gradient that of differences") {
  std::vector<double> logits = normal_numbers<double>(kRows * kVocabulary, 1);
  for (const std::int64_t ranks : {1, 2, 4}) {
    std::vector<double> dlogits;
    const double loss = cut_loss(logits, ranks, {1.0 / 5, 1.0 / 5, false}, dlogits);
    CHECK(loss == Approx(naive_loss(logits)).epsilon(1e-13));
    std::vector<double> gradient;
    for (std::int64_t row = 0; row < kRows; ++row) {
      const auto begin = dlogits.begin() + row * 44;
      CHECK(*(begin + kVocabulary) == 0);  // the padded column
      gradient.insert(gradient.end(), begin, begin + kVocabulary);
    }
    require_gradient(logits, gradient, [&] { return naive_loss(logits); });
  }
}

TEST_CASE("the loss in float is that in double, also where labels are ignored") {
  const std::vector<double> logits = normal_numbers<double>(kRows * kVocabulary, 1);
  for (const std::int64_t ranks : {1, 2, 4}) {
    std::vector<double> exact;
    std::vector<float> rounded;
    const double loss = cut_loss(logits, ranks, {1.0 / 5, 1.0 / 5, false}, exact);
    CHECK(cut_loss(converted<float>(logits), ranks, {1.0 / 5, 1.0 / 5, false}, rounded) ==
          Approx(loss).epsilon(1e-6));
    CHECK(relative_error(rounded, exact) < 1e-6);
    for (std::size_t column = 0; column < 44; ++column) {
      CHECK(rounded[3 * 44 + column] == 0);  // row 3 has no label
    }
  }
}

TEST_CASE("the loss adds to what is there, and its gradient takes the loss scale") {
  const std::vector<double> logits = normal_numbers<double>(kRows * kVocabulary, 1);
  std::vector<double> plain;
  std::vector<double> scaled;
  cut_loss(logits, 1, {0.2, 0.2, false}, plain);
  const double loss = cut_loss(logits, 1, {0.2, 0.2 * 1024, true}, scaled);  // from 0
  CHECK(loss == Approx(naive_loss(logits)).epsilon(1e-13));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(scaled[i] == Approx(1024 * plain[i]).epsilon(1e-12).margin(1e-15));
  }
  CHECK(kernels::cpu::count_labels(kLabels.data(), kRows) == 5);
}

}  // namespace
}  // namespace lockstep
