// What is wrong with a gradient, in words: each likely mistake leaves a number of its own.
#include <fmt/format.h>

#include "core/check/value_verifier.h"

namespace lockstep {
namespace {

using field::Number;

Number times(Number a, std::int64_t numerator, std::int64_t denominator) {
  return field::multiply(a, field::fraction(numerator, denominator));
}

/// Contributions are by d, then m. Sum of those of one d (m < 0) or one m (d < 0).
Number partial_sum(const std::vector<Number>& contributions, int microbatches, int d, int m) {
  Number sum = 0;
  for (std::size_t place = 0; place < contributions.size(); ++place) {
    const auto where = static_cast<int>(place);
    if ((d < 0 || where / microbatches == d) && (m < 0 || where % microbatches == m)) {
      sum = field::add(sum, contributions[place]);
    }
  }
  return sum;
}

std::string which_text(int d, int m) {
  if (d >= 0 && m >= 0) {
    return fmt::format("dp {}, micro-batch {}", d, m);
  }
  return d >= 0 ? fmt::format("dp {}", d) : fmt::format("micro-batch {}", m);
}

/// A contribution left out or counted twice.
std::string explain_contribution(const std::vector<Number>& contributions,
                                 const ValueSetting& setting,
                                 Number difference) {
  for (int d = -1; d < setting.data; ++d) {
    for (int m = -1; m < setting.microbatches; ++m) {
      if (d < 0 && m < 0) {
        continue;
      }
      const Number part = partial_sum(contributions, setting.microbatches, d, m);
      if (difference == part) {
        return fmt::format("holds the contribution of {} twice", which_text(d, m));
      }
      if (difference == field::subtract(0, part)) {
        return fmt::format("lacks the contribution of {}", which_text(d, m));
      }
    }
  }
  return {};
}

/// Right up to a factor.
std::string explain_factor(const ValueSetting& setting, int t, Number wanted, Number found) {
  const std::int64_t n = setting.data;
  const std::int64_t m = setting.microbatches;
  for (const std::int64_t factor :
       {std::int64_t{2}, n, m, n * m, std::int64_t{t}, n * n, m * m, n * t, m * t}) {
    if (factor > 1 && found == times(wanted, factor, 1)) {
      return fmt::format("is {} times the expected one", factor);
    }
    if (factor > 1 && found == times(wanted, 1, factor)) {
      return fmt::format("is 1/{} of the expected one", factor);
    }
  }
  return {};
}

/// Contributions of one rank only.
std::string explain_local(const std::vector<Number>& contributions,
                          const ValueSetting& setting,
                          Number coefficient,
                          Number found) {
  for (int d = 0; d < setting.data && setting.data > 1; ++d) {
    const Number local =
        field::multiply(partial_sum(contributions, setting.microbatches, d, -1), coefficient);
    for (const std::int64_t factor : {1, setting.data}) {
      if (found == times(local, factor, 1)) {
        return fmt::format("holds contributions of dp {} only{}",
                           d,
                           factor > 1 ? fmt::format(", {} times", factor) : std::string());
      }
    }
  }
  return {};
}

}  // namespace

std::string explain_gradient(const ValueIteration& expected,
                             const ValueSetting& setting,
                             std::int32_t parameter,
                             int tensor_degree,
                             Number found) {
  const auto p = static_cast<std::size_t>(parameter);
  const Number whole = expected.gradient[p];
  const Number wanted = field::multiply(whole, expected.coefficient);
  if (found == 0) {
    return "is zero";
  }
  if (expected.coefficient != 1 && found == whole) {
    return "is right but not clipped";
  }
  if (expected.coefficient != 1 && found == field::multiply(wanted, expected.coefficient)) {
    return "is clipped twice";
  }
  std::vector<Number> contributions = expected.contributions[p];
  std::string text = explain_factor(setting, tensor_degree, wanted, found);
  if (text.empty()) {
    text = explain_local(contributions, setting, expected.coefficient, found);
  }
  if (text.empty()) {
    for (Number& contribution : contributions) {
      contribution = field::multiply(contribution, expected.coefficient);
    }
    text = explain_contribution(contributions, setting, field::subtract(found, wanted));
  }
  for (int c = 0; c < tensor_degree && tensor_degree > 1 && text.empty(); ++c) {
    if (found == field::multiply(wanted, field::part(c, c + 1, tensor_degree))) {
      text = fmt::format("is a partial sum: that of tp {} of {} only", c, tensor_degree);
    }
  }
  if (text.empty()) {
    const auto other = expected.gradient_of.find(found);
    text = other != expected.gradient_of.end()
               ? fmt::format("is that of parameter {}", other->second)
               : std::string("is not the expected one: wrong operands somewhere before");
  }
  return text;
}

}  // namespace lockstep
