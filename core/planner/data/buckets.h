// Gradient buckets: which parameters are reduced together, and in which order.
//
// The rules of PyTorch DDP (all its variants), Megatron-LM and DeepSpeed, as pure functions on
// sizes. What is done with a bucket (all-reduce, reduce-scatter) is the planner's business, how its
// parameters lie inside it is core/layout.h's.
//
//     BucketList buckets;
//     ddp_buckets(DdpBucketing::kRebuilt, {}, {.sizes = bytes, .order = ready}, buckets);
//     for (int k = 0; k < buckets.count(); ++k) reduce(buckets.members_of(k));
//
// Functions overwrite the list that they are given and keep its memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep {

/// The parameters to put in buckets, in registration order.
struct BucketInput {
  std::span<const std::int64_t> sizes;       ///< bytes or elements, in the unit of the limit
  std::span<const std::int32_t> keys = {};   ///< (dtype, device) as 0..63; empty = all 0
  std::span<const std::int32_t> order = {};  ///< ready order, a permutation; empty = registration
};

/// One bucket: members [first, first + count) of its list, all of one key.
struct Bucket {
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::int32_t key = 0;
  std::int32_t order = 0;  ///< what the list was sorted by; nothing else
  std::int64_t size = 0;   ///< sum of the members' sizes, without padding
};

struct BucketList {
  std::vector<std::int32_t> members;  ///< parameters; use members_of
  std::vector<Bucket> buckets;        ///< in launch order

  int count() const { return static_cast<int>(buckets.size()); }
  std::span<const std::int32_t> members_of(int bucket) const {
    const Bucket& range = buckets[static_cast<std::size_t>(bucket)];
    return std::span<const std::int32_t>(members).subspan(static_cast<std::size_t>(range.first),
                                                          static_cast<std::size_t>(range.count));
  }
};

/// PyTorch's compute_bucket_assignment_by_size (reducer.cpp). Per key there is one open bucket; a
/// tensor is added FIRST, then the bucket is closed when its size reached the limit, so a bucket
/// can exceed its limit by almost one tensor. Each closed bucket moves its key on to the next limit
/// (the last one stays). What is left over at the end forms the last buckets.
///
/// Order of the list: with `order` (ready order) as the buckets are closed, left-overs last in the
/// order in which they were opened (PyTorch: that of a hash table); without, by first parameter.
/// PyTorch gives every sparse gradient a bucket of its own; there are none here.
void compute_bucket_assignment(const BucketInput& input,
                               std::span<const std::int64_t> limits,
                               BucketList& list);

/// Buckets that never exceed `limit`, unless one parameter alone does: a bucket is closed when the
/// NEXT parameter would not fit. Order of the list: as the buckets are closed.
///
/// DeepSpeed's IPG buckets (stage_1_and_2.py, limit reduce_bucket_size = kIpgBucketElements), and
/// DDP's `ideal` variant.
void fill_buckets(const BucketInput& input, std::int64_t limit, BucketList& list);

/// Default reduce_bucket_size of DeepSpeed, in elements.
inline constexpr std::int64_t kIpgBucketElements = 500'000'000;

/// Registration order backwards: the order in which gradients become ready when modules run in the
/// order they were registered. Inside a Linear (weight registered before bias) that is bias, then
/// weight, which is also what PyTorch records (measured).
void reverse_registration(std::int32_t parameters, std::vector<std::int32_t>& order);

// --- PyTorch DistributedDataParallel ---

inline constexpr std::int64_t kDdpFirstBucketBytes = std::int64_t{1} << 20;  // 1 MiB
inline constexpr std::int64_t kDdpBucketBytes = std::int64_t{25} << 20;      // 25 MiB

struct DdpBucketOptions {
  std::optional<std::int64_t> cap_bytes =
      std::nullopt;  ///< bucket_cap_mb; then no bucket is capped at 1 MiB
  bool find_unused_parameters = false;
  bool static_graph = false;
  bool ideal = false;
};

/// How one synchronised pass (forward and backward that reduces) groups its gradients.
enum class DdpBucketing : std::uint8_t {
  kSingle,        ///< no limit: one bucket per key, members in registration order
  kRebuilt,       ///< over the ready order, limits 1 MiB, then 25 MiB
  kRegistration,  ///< find_unused: over registration order, the list reversed
  kIdeal,         ///< over the ready order, closed before 25 MiB are exceeded
};

/// The bucketing of the `pass`-th synchronised pass, from 0. By default pass 0 has the single
/// bucket and records the ready order; with static_graph (which overrules find_unused) hooks return
/// early in pass 0, so pass 1 records and has the single bucket too.
DdpBucketing ddp_bucketing(const DdpBucketOptions& options, std::int64_t pass);

/// Whether buckets are rebuilt (order and sizes broadcast, new buckets allocated, old ones freed)
/// between synchronised passes pass - 1 and pass: at the first forward after pass - 1, even if that
/// forward belongs to a micro-batch under no_sync. True for at most one pass.
bool ddp_rebuilds_before(const DdpBucketOptions& options, std::int64_t pass);

/// Number of different steps: the last variant is the steady one. A step has one synchronised pass
/// with no_sync, and as many as micro-batches without. Default 3 (0, 1, >= 2), static_graph 4
/// (0, 1, 2, >= 3), find_unused and ideal 1.
std::int32_t ddp_variant_count(const DdpBucketOptions& options, std::int64_t passes_per_step = 1);

/// The buckets. `input.sizes` in bytes; `input.order` is the ready order, read by kRebuilt and
/// kIdeal only.
void ddp_buckets(DdpBucketing bucketing,
                 const DdpBucketOptions& options,
                 const BucketInput& input,
                 BucketList& list);

// --- Megatron-LM ---

struct MegatronBucketOptions {
  std::int32_t data_parallel = 1;
  bool distributed_optimizer = false;  ///< padded parameter starts, which count towards the cap
  bool single_bucket = false;          ///< no overlap, pp_rank > 0, or a model chunk but the first
  /// Unset: megatron_bucket_elements(data_parallel).
  std::optional<std::int64_t> cap_elements = std::nullopt;
  /// By parameter, 1 = word embedding tied across stages (empty = none). The distributed optimizer
  /// gives it a bucket of its own, so that first and last stage cut it alike.
  std::span<const std::uint8_t> tied = {};
};

/// Default cap in elements: max(40,000,000, 1,000,000 * dp) (distributed_data_parallel.py).
std::int64_t megatron_bucket_elements(std::int32_t data_parallel);

/// Buckets of Megatron-LM's gradient buffers, one buffer per key, over registration order backwards
/// (`input.sizes` in elements; `input.order` is not read). A parameter is added first, then the
/// bucket is closed when it spans the cap. Order of the list: as the buckets are closed.
void megatron_buckets(const MegatronBucketOptions& options,
                      const BucketInput& input,
                      BucketList& list);

}  // namespace lockstep
