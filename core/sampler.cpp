#include "core/sampler.h"

#include <numeric>
#include <random>

#include <fmt/format.h>

#include "core/check.h"

namespace lockstep {

namespace {

void check(const SamplerSpec& spec) {
  LOCKSTEP_CHECK(spec.samples >= 0 && spec.replicas >= 1,
                 fmt::format("{} samples for {} replicas", spec.samples, spec.replicas));
}

/// Uniform in [0, bound): draws above the last whole multiple of bound are thrown away.
std::uint64_t draw_below(std::uint64_t bound, std::mt19937_64& generator) {
  const std::uint64_t incomplete = (0 - bound) % bound;  // 2^64 mod bound
  std::uint64_t draw = generator();
  while (draw < incomplete) {
    draw = generator();
  }
  return draw % bound;
}

}  // namespace

std::int64_t sampler_length(const SamplerSpec& spec) {
  check(spec);
  const std::int64_t last = spec.drop_last ? 0 : spec.replicas - 1;
  return (spec.samples + last) / spec.replicas;
}

void sampler_order(const SamplerSpec& spec, std::vector<std::int64_t>& order) {
  check(spec);
  order.resize(static_cast<std::size_t>(spec.samples));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (!spec.shuffle) {
    return;
  }
  // Fisher-Yates from the back: position i is final once swapped with one of the i + 1 left.
  std::mt19937_64 generator(spec.seed + spec.epoch);
  for (std::size_t i = order.size(); i-- > 1;) {
    std::swap(order[i], order[draw_below(i + 1, generator)]);
  }
}

void sampler_indices(const SamplerSpec& spec,
                     std::int32_t rank,
                     std::vector<std::int64_t>& indices) {
  LOCKSTEP_CHECK(rank >= 0 && rank < spec.replicas,
                 fmt::format("rank {} of {} replicas", rank, spec.replicas));
  std::vector<std::int64_t> order;  // empty: the identity
  if (spec.shuffle) {
    sampler_order(spec, order);
  }
  indices.resize(static_cast<std::size_t>(sampler_length(spec)));
  std::int64_t position = rank;
  for (std::int64_t& index : indices) {
    // Behind the end the order starts again, several times when there are fewer samples than ranks.
    const std::int64_t wrapped = position % spec.samples;
    index = order.empty() ? wrapped : order[static_cast<std::size_t>(wrapped)];
    position += spec.replicas;
  }
}

}  // namespace lockstep
