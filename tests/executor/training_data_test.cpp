// Samples: of a stream of tokens, of documents with padding, and of the task for networks that read
// numbers.
#include "executor/training_data.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "executor/class_data.h"
#include "tests/support/catch.h"

namespace lockstep::exec {
namespace {

struct Read {
  std::vector<std::int64_t> inputs;
  std::vector<std::int64_t> labels;
};

Operand operand(void* data, std::int64_t elements, DType dtype) {
  Operand it;
  it.data = data;
  it.elements = elements;
  it.dtype = dtype;
  return it;
}

Read read(const TokenData& data, bool evaluation, std::int64_t index, std::int64_t seq) {
  Read it{std::vector<std::int64_t>(static_cast<std::size_t>(seq)),
          std::vector<std::int64_t>(static_cast<std::size_t>(seq))};
  const Operand inputs = operand(it.inputs.data(), seq, DType::kInt64);
  const Operand labels = operand(it.labels.data(), seq, DType::kInt64);
  data.copy(evaluation, index, {&inputs, &labels, 0});
  return it;
}

TEST_CASE("a document's last sample is padded, and its padding has labels that do not count") {
  // Documents "abcde", "f" and "gh", a blank line between them.
  const TokenData data(text_tokens("abcde\n\nf\n\ngh"), 4, TokenCut::kDocuments);
  // "abcd", "e" with its line break, "f" with its, "g": the last is for evaluation.
  REQUIRE(data.samples(false) == 3);
  REQUIRE(data.samples(true) == 1);
  const Read first = read(data, false, 0, 4);
  CHECK(first.inputs == std::vector<std::int64_t>{'a', 'b', 'c', 'd'});
  CHECK(first.labels == std::vector<std::int64_t>{'b', 'c', 'd', 'e'});
  const Read second = read(data, false, 1, 4);
  CHECK(second.inputs == std::vector<std::int64_t>{'e', '\n', 0, 0});
  CHECK(second.labels == std::vector<std::int64_t>{'\n', '\n', -100, -100});
  const Read last = read(data, true, 0, 4);
  CHECK(last.inputs == std::vector<std::int64_t>{'g', 0, 0, 0});
  CHECK(last.labels == std::vector<std::int64_t>{'h', -100, -100, -100});
  CHECK(data.counted_labels(false, 0) == 4);
  CHECK(data.counted_labels(false, 1) == 2);
  CHECK(data.counted_labels(true, 0) == 1);
}

TEST_CASE("a stream is cut without padding, whatever stands in it") {
  const TokenData data(text_tokens("abc\n\ndefghij"), 3);
  CHECK(data.samples(false) + data.samples(true) == 3);  // 11 of 12 tokens have a next one
  CHECK(read(data, false, 1, 3).inputs == std::vector<std::int64_t>{'\n', '\n', 'd'});
  CHECK(data.counted_labels(false, 1) == 3);
  CHECK_THROWS_AS(TokenData(text_tokens("abcdef"), 3), BadInputError);
  CHECK_THROWS_AS(TokenData(text_tokens("abc"), 3, TokenCut::kDocuments), BadInputError);
}

/// Calls visit(features, label) for samples [0, n) of a part.
template <typename Visit>
void for_each_point(
    const ClassData& data, bool evaluation, std::int64_t n, std::int64_t features, Visit&& visit) {
  std::vector<double> x(static_cast<std::size_t>(features));
  std::int64_t label = -1;
  const Operand inputs = operand(x.data(), features, DType::kFp64);
  const Operand labels = operand(&label, 1, DType::kInt64);
  for (std::int64_t i = 0; i < n; ++i) {
    data.copy(evaluation, i, {&inputs, &labels, 0});
    visit(x, label);
  }
}

TEST_CASE("the nearest mean of what was seen tells the class of nearly every other point") {
  constexpr std::int64_t kFeatures = 64;
  constexpr std::int64_t kClasses = 10;
  constexpr std::int64_t kSamples = 2000;
  const ClassData data(kFeatures, kClasses);
  std::vector<std::vector<double>> means(kClasses, std::vector<double>(kFeatures));
  for_each_point(data, false, kSamples, kFeatures, [&](const auto& x, std::int64_t label) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      means[static_cast<std::size_t>(label)][j] += x[j] * kClasses / kSamples;
    }
  });
  const std::int64_t all = data.samples(true);
  std::int64_t right = 0;
  for_each_point(data, true, all, kFeatures, [&](const auto& x, std::int64_t label) {
    const auto distance = [&x](const std::vector<double>& mean) {
      double sum = 0;
      for (std::size_t j = 0; j < x.size(); ++j) {
        sum += (x[j] - mean[j]) * (x[j] - mean[j]);
      }
      return sum;
    };
    const auto nearest =
        std::min_element(means.begin(), means.end(), [&](const auto& a, const auto& b) {
          return distance(a) < distance(b);
        });
    right += nearest - means.begin() == label ? 1 : 0;
  });
  CHECK(right > all * 9 / 10);
}

}  // namespace
}  // namespace lockstep::exec
