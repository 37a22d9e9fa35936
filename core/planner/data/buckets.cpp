#include "core/planner/data/buckets.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/check.h"
#include "core/layout.h"

namespace lockstep {

namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
constexpr std::int32_t kKeys = 64;

/// What makes one kind of buckets differ from another.
struct Rule {
  std::span<const std::int64_t> limits;  ///< of the first, second, ... bucket; the last one stays
  bool close_before = false;             ///< close a bucket that the next parameter would overfill
  bool backwards = false;                ///< walk registration order backwards
  bool by_first_member = false;          ///< sort the list by first member, not as closed
  /// Parameters start at multiples of this in their bucket: a power of two, because rounding up
  /// by division would cost more than all the rest of the walk.
  std::int64_t start_alignment = 1;
  std::span<const std::uint8_t> alone = {};  ///< by parameter: 1 = a bucket of its own
};

/// Walks the parameters of one key, appending its buckets to the list.
///
/// A position is a place in the walk. Bucket::order is the position that opened the bucket, or
/// twice the position at which it was closed, plus 1 if it was closed after the parameter there was
/// added; left-overs come behind all positions. A position opens and closes parameters of one key,
/// so no two buckets of the list have the same order.
class Walk {
 public:
  Walk(const BucketInput& input, const Rule& rule, std::int32_t key, BucketList& list)
      : input_(input), rule_(rule), key_(key), list_(list) {}

  void run() {
    const auto count = static_cast<std::int32_t>(input_.sizes.size());
    for (std::int32_t position = 0; position < count; ++position) {
      const std::int32_t parameter = parameter_at(position);
      if (input_.keys.empty() || input_.keys[static_cast<std::size_t>(parameter)] == key_) {
        add(parameter, position);
      }
    }
    if (open_.count > 0) {
      close(2 * count + opened_at_);
    }
  }

 private:
  std::int32_t parameter_at(std::int32_t position) const {
    if (rule_.backwards) {
      return static_cast<std::int32_t>(input_.sizes.size()) - 1 - position;
    }
    return input_.order.empty() ? position : input_.order[static_cast<std::size_t>(position)];
  }

  void add(std::int32_t parameter, std::int32_t position) {
    const auto index = static_cast<std::size_t>(parameter);
    const std::int64_t size = input_.sizes[index];
    const bool alone = !rule_.alone.empty() && rule_.alone[index] != 0;
    const bool overfills = rule_.close_before && span_ + size > rule_.limits[limit_];
    if (open_.count > 0 && (alone || overfills)) {
      close(2 * position);
    }
    if (open_.count == 0) {
      open(position);
    }
    list_.members.push_back(parameter);
    ++open_.count;
    open_.size += size;
    const std::int64_t mask = rule_.start_alignment - 1;
    span_ = ((span_ + mask) & ~mask) + size;
    if (alone || (!rule_.close_before && span_ >= rule_.limits[limit_])) {
      close(2 * position + 1);
    }
  }

  void open(std::int32_t position) {
    open_ = Bucket{.first = static_cast<std::int32_t>(list_.members.size()), .key = key_};
    opened_at_ = position;
    span_ = 0;
  }

  void close(std::int32_t order) {
    Bucket closed = open_;  // a copy, so that the open one can live in registers
    closed.order = rule_.by_first_member ? opened_at_ : order;
    list_.buckets.push_back(closed);
    open_.count = 0;
    limit_ = std::min(limit_ + 1, rule_.limits.size() - 1);
  }

  BucketInput input_;
  Rule rule_;
  std::int32_t key_;
  BucketList& list_;
  Bucket open_;
  std::int32_t opened_at_ = 0;
  std::int64_t span_ = 0;  ///< elements of the open bucket, with padding between parameters
  std::size_t limit_ = 0;  ///< index of the current limit
};

void assign(const BucketInput& input, const Rule& rule, BucketList& list) {
  const std::size_t count = input.sizes.size();
  LOCKSTEP_CHECK(!rule.limits.empty(), "buckets without a limit");
  LOCKSTEP_CHECK((input.keys.empty() || input.keys.size() == count) &&
                     (input.order.empty() || input.order.size() == count) &&
                     (rule.alone.empty() || rule.alone.size() == count),
                 fmt::format("{} sizes, {} keys, {} in order, {} alone",
                             count,
                             input.keys.size(),
                             input.order.size(),
                             rule.alone.size()));
  list.members.clear();
  list.members.reserve(count);
  list.buckets.clear();
  // Key by key, so that the members of a bucket are neighbours; then the buckets are merged.
  for (std::int32_t key = 0; key < kKeys && list.members.size() < count; ++key) {
    Walk(input, rule, key, list).run();
  }
  LOCKSTEP_CHECK(list.members.size() == count, "a key outside 0..63, or order not a permutation");
  const auto earlier = [](const Bucket& a, const Bucket& b) { return a.order < b.order; };
  // With one key they are in order already; looking costs a tenth of sorting.
  if (!std::is_sorted(list.buckets.begin(), list.buckets.end(), earlier)) {
    std::sort(list.buckets.begin(), list.buckets.end(), earlier);
  }
}

}  // namespace

void compute_bucket_assignment(const BucketInput& input,
                               std::span<const std::int64_t> limits,
                               BucketList& list) {
  assign(input, {.limits = limits, .by_first_member = input.order.empty()}, list);
}

void fill_buckets(const BucketInput& input, std::int64_t limit, BucketList& list) {
  assign(input, {.limits = {&limit, 1}, .close_before = true}, list);
}

void reverse_registration(std::int32_t parameters, std::vector<std::int32_t>& order) {
  order.resize(static_cast<std::size_t>(parameters));
  std::iota(order.rbegin(), order.rend(), 0);
}

DdpBucketing ddp_bucketing(const DdpBucketOptions& options, std::int64_t pass) {
  if (options.ideal) {
    return DdpBucketing::kIdeal;
  }
  if (options.find_unused_parameters && !options.static_graph) {
    return DdpBucketing::kRegistration;
  }
  const std::int64_t recording_pass = options.static_graph ? 1 : 0;
  return pass <= recording_pass ? DdpBucketing::kSingle : DdpBucketing::kRebuilt;
}

bool ddp_rebuilds_before(const DdpBucketOptions& options, std::int64_t pass) {
  return pass > 0 && ddp_bucketing(options, pass) == DdpBucketing::kRebuilt &&
         ddp_bucketing(options, pass - 1) == DdpBucketing::kSingle;
}

std::int32_t ddp_variant_count(const DdpBucketOptions& options, std::int64_t passes_per_step) {
  LOCKSTEP_CHECK(passes_per_step >= 1, fmt::format("{} passes a step", passes_per_step));
  std::int64_t unsteady_passes = 0;  // up to and including the one that is preceded by the rebuild
  if (!options.ideal && (options.static_graph || !options.find_unused_parameters)) {
    unsteady_passes = options.static_graph ? 3 : 2;
  }
  return static_cast<std::int32_t>(ceil_divide(unsteady_passes, passes_per_step)) + 1;
}

void ddp_buckets(DdpBucketing bucketing,
                 const DdpBucketOptions& options,
                 const BucketInput& input,
                 BucketList& list) {
  // A cap given by the user holds for every bucket; only PyTorch's own cap has the small first one.
  const std::int64_t cap = options.cap_bytes.value_or(kDdpBucketBytes);
  const std::array<std::int64_t, 2> limits{options.cap_bytes.value_or(kDdpFirstBucketBytes), cap};
  const std::array<std::int64_t, 1> no_limit{kNoLimit};
  const BucketInput registered{input.sizes, input.keys, {}};
  switch (bucketing) {
    case DdpBucketing::kRebuilt:
      LOCKSTEP_CHECK(input.order.size() == input.sizes.size(), "buckets rebuilt without an order");
      compute_bucket_assignment(input, limits, list);
      return;
    case DdpBucketing::kIdeal:
      fill_buckets(input, cap, list);
      return;
    case DdpBucketing::kSingle:
      compute_bucket_assignment(registered, no_limit, list);
      break;
    case DdpBucketing::kRegistration:
      compute_bucket_assignment(registered, limits, list);
      break;
  }
  // The last parameters are ready first (DistributedDataParallel reverses the list).
  std::reverse(list.buckets.begin(), list.buckets.end());
}

std::int64_t megatron_bucket_elements(std::int32_t data_parallel) {
  return std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * data_parallel);
}

void megatron_buckets(const MegatronBucketOptions& options,
                      const BucketInput& input,
                      BucketList& list) {
  const std::int64_t cap =
      options.cap_elements.value_or(megatron_bucket_elements(options.data_parallel));
  const std::int64_t limit = options.single_bucket ? kNoLimit : cap;
  Rule rule{.limits = {&limit, 1}, .backwards = true};
  if (options.distributed_optimizer) {
    rule.start_alignment = kDistributedOptimizerStart;
    rule.alone = options.tied;
  }
  assign(input, rule, list);
}

}  // namespace lockstep
