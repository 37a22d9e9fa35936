// Buckets: how the gradients of one rank drop into buckets, and when each bucket is reduced over
// the data-parallel ranks. Which parameter lies in which bucket is read from the plan: which
// buffers the operations in front of a reduction fill.
//
//     const TraceIndex index(plan, step);
//     const Buckets buckets(index, rank, &scenario.strategy.data);
//     if (!buckets.why_empty().empty()) return say(buckets.why_empty());
//     for (const BucketLaunch& it : buckets.launches()) lane.box(it.started, it.ended, it.bucket);
//     const std::vector<BucketState> now = buckets.state(cursor);   // one for each bucket
//
// What it is not: units of sharded parameters (shards.h), or the other traffic of the data axis.
// It keeps nothing of plan and trace.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/planner/data/bucket_caps.h"
#include "core/trace_index.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

/// A parameter whose gradient is reduced; in registration order.
struct BucketParameter {
  std::int32_t parameter = 0;  ///< of the model graph
  std::string name;
  std::int64_t elements = 0;  ///< on this rank
  std::int64_t bytes = 0;     ///< of its gradient
  std::int32_t bucket = 0;    ///< the last one that it was reduced in
};

struct Bucket {
  std::vector<std::int32_t> members;  ///< into parameters(), in the order of the bucket
  std::int64_t member_bytes = 0;
  std::int64_t bytes = 0;                 ///< of the message: with padding
  std::optional<std::int64_t> cap_bytes;  ///< where it was meant to be closed
};

/// A parameter's way into its bucket.
struct BucketDrop {
  std::int32_t parameter = 0;         ///< into parameters()
  std::uint32_t operation = kNoSpan;  ///< that wrote the gradient last
  Nanoseconds ready = 0;              ///< when it ended
  Nanoseconds filled = 0;             ///< when the gradient lay in the bucket
};

/// One reduction of a bucket.
struct BucketLaunch {
  std::int32_t bucket = 0;
  std::int32_t microbatch = -1;  ///< that made it complete
  std::uint32_t operation = kNoSpan;
  std::vector<BucketDrop> drops;  ///< in the order in which they came in
  Nanoseconds first_filled = 0;
  Nanoseconds full = 0;  ///< the last gradient lay in it
  Nanoseconds issued = 0;
  Nanoseconds arrived = 0;  ///< this rank could have begun
  Nanoseconds started = 0;  ///< all ranks could
  Nanoseconds ended = 0;
  Nanoseconds exposed = 0;     ///< compute stood still for the transfer (core/time_split.h)
  Nanoseconds waiting = 0;     ///< compute stood still because others had not arrived
  std::int32_t last_rank = 0;  ///< that made it start: first of its track
};

enum class BucketPhase : std::uint8_t {
  kEmpty,
  kFilling,
  kReady,     ///< full; its reduction has not started
  kInFlight,  ///< being reduced
  kDone,
};
std::string_view name_of(BucketPhase phase);

struct BucketState {
  BucketPhase phase = BucketPhase::kEmpty;
  std::int64_t filled_bytes = 0;
  double filled = 0;         ///< fraction of the members' bytes, 0 to 1
  std::int32_t launch = -1;  ///< into launches(); the one that it fills up for, or the last
};

struct BucketSummary {
  std::string kind;   ///< "all_reduce"
  std::string group;  ///< "dp"
  std::int64_t ranks = 1;
  std::int64_t reductions = 0;
  std::int64_t tensor_bytes = 0;
  double sent_bytes = 0;     ///< by this rank (core/traffic.h)
  Nanoseconds transfer = 0;  ///< from start to end, summed up
  Nanoseconds hidden = 0;    ///< of it, while the compute stream was busy
  Nanoseconds exposed = 0;
  Nanoseconds waiting = 0;
  TimeWindow tail;  ///< from the last gradient to the end of the last reduction
  /// Of the time of transfers, how much computed meanwhile (Holistic Trace Analysis).
  double overlap() const {
    return transfer == 0 ? 0 : static_cast<double>(hidden) / static_cast<double>(transfer);
  }
};

class Buckets {
 public:
  /// `data`: for the caps; without it there are none.
  Buckets(const TraceIndex& index, int rank, const DataStrategy* data = nullptr);

  int rank() const { return rank_; }
  TimeWindow whole() const { return whole_; }
  /// Why there is nothing to see, in words; "" when there is.
  const std::string& why_empty() const { return why_empty_; }
  const std::vector<BucketParameter>& parameters() const { return parameters_; }
  /// In the order of their first reduction.
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// In program order.
  const std::vector<BucketLaunch>& launches() const { return launches_; }
  const BucketSummary& summary() const { return summary_; }

  /// By bucket.
  std::vector<BucketState> state(Nanoseconds time) const;

 private:
  void add_launches(const TraceIndex& index, std::int32_t track);
  void add_times(const TraceIndex& index, std::int32_t track);
  void sum_up(const TraceIndex& index, std::int32_t track);
  BucketState state_of(std::size_t bucket, Nanoseconds time) const;

  int rank_;
  TimeWindow whole_;
  std::string why_empty_;
  std::vector<BucketParameter> parameters_;
  std::vector<Bucket> buckets_;
  std::vector<BucketLaunch> launches_;
  std::vector<std::vector<std::int32_t>> launches_of_;    ///< by bucket
  std::vector<std::vector<std::int64_t>> bytes_by_drop_;  ///< by launch: sums over its drops
  BucketSummary summary_;
};

}  // namespace lockstep::view
