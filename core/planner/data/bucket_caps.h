// Bucket caps: the size limits that a data-parallel strategy gives to its gradient buckets. The
// rules that fill buckets up to a limit are core/planner/data/buckets.h's.
#pragma once

#include <cstdint>
#include <optional>

#include "core/planner/data/buckets.h"
#include "core/strategy.h"

namespace lockstep {

DdpBucketOptions ddp_bucket_options(const DataStrategy& data);

/// Limit of the buckets that ZeRO stages 1 and 2 fill one by one (not Megatron-LM's), in elements.
std::int64_t zero_bucket_elements(const DataStrategy& data, std::int64_t element_size);

struct BucketCaps {
  std::int64_t first_bytes = 0;  ///< of the bucket that is reduced first
  std::int64_t rest_bytes = 0;
  /// A bucket is closed when it has reached the limit; else before it would exceed it.
  bool may_exceed = false;
};

/// Of the step that repeats, for `shards` ranks on the data axis; nothing where gradients are not
/// reduced by buckets.
std::optional<BucketCaps> bucket_caps(const DataStrategy& data,
                                      std::int64_t element_size,
                                      std::int32_t shards);

}  // namespace lockstep
