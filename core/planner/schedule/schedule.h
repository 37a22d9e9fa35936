// Pipeline schedules: which rank computes which (stage, micro-batch) in which order.
//
// A Schedule is only an order: no durations, no bytes, no tensors. It is what PyTorch writes into
// its action CSV (action_csv.h), so a schedule drawn by hand is as good as a generated one. The
// generators follow torch.distributed.pipelining 2.7 action by action, quirks included; each has a
// file of its own that explains it. Communication is added by communication.h, idle time is found
// by unit_time.h.
//
//     Schedule s = make_schedule({ScheduleKind::k1F1B, 4, 1, 8});
//     action_text(s.ranks[3][0]);  // "3F0"
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

enum class ActionKind : std::uint8_t {
  kForward,
  kBackward,        ///< the whole backward: input gradient, then weight gradient
  kBackwardInput,   ///< only the input gradient, which is all that the stage before waits for
  kBackwardWeight,  ///< only the weight gradient, which nobody waits for: it may fill a bubble
  kUnshard,
  kReshard,
  kReduceGrad,
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
};

inline constexpr int kActionKindCount = 11;

/// Action::microbatch of a kind that works on the whole stage (unshard, reshard, reduce).
inline constexpr std::int32_t kNoMicrobatch = -1;

/// One cell of a schedule.
struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int32_t stage = 0;  ///< virtual stage, 0 .. stages-1 in the order of the model's layers
  std::int32_t microbatch = kNoMicrobatch;

  friend bool operator==(const Action&, const Action&) = default;
};

/// Forward or one of the three backward kinds: an action that takes time on the compute stream.
constexpr bool is_compute(ActionKind kind) {
  return kind <= ActionKind::kBackwardWeight;
}
/// Send or receive between two stages.
constexpr bool is_communication(ActionKind kind) {
  return kind >= ActionKind::kSendForward;
}
/// Produces the gradient that the stage before waits for: the whole backward or its input half.
constexpr bool gives_input_gradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardInput;
}
/// Ends the life of the stage's activations: the whole backward or its weight half.
constexpr bool releases_activations(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kBackwardWeight;
}

/// PyTorch's spelling of the kind: "F", "B", "I", "W", "UNSHARD", "SEND_F", ...
std::string_view name_of(ActionKind kind);
/// PyTorch's spelling of the action: stage, kind, micro-batch: "2F0", "1UNSHARD", "3SEND_F1".
std::string action_text(const Action& action);

enum class ScheduleKind : std::uint8_t {
  kGPipe,
  k1F1B,
  kInterleaved,
  kLoopedBfs,
  kZbH1,
  kInterleavedZb,  ///< zb-h1 with several chunks per rank
  kZbV,
};

inline constexpr int kScheduleKindCount = 7;

/// Our spelling in scenario files: gpipe, 1f1b, interleaved, looped-bfs, zb-h1, interleaved-zb,
/// zbv.
std::string_view name_of(ScheduleKind kind);
/// The class of torch.distributed.pipelining that runs this schedule: "Schedule1F1B", ...
std::string_view pytorch_class_of(ScheduleKind kind);

struct ScheduleRequest {
  ScheduleKind kind = ScheduleKind::k1F1B;
  std::int32_t pipeline_degree = 1;  ///< P, pipeline ranks
  std::int32_t chunks = 1;           ///< V, virtual stages on each rank
  std::int32_t microbatches = 1;     ///< M, micro-batches per step
};

/// Every reason why this schedule cannot be made, in words; empty when it can.
std::vector<std::string> problems(const ScheduleRequest& request);

/// An order of actions for each pipeline rank, and the ranks on which the stages live.
struct Schedule {
  std::int32_t pipeline_degree = 1;
  std::int32_t chunks = 1;
  std::int32_t microbatches = 1;
  std::vector<std::int32_t> stage_to_rank;   ///< by virtual stage
  std::vector<std::int32_t> stage_to_chunk;  ///< by virtual stage: its position on its rank
  std::vector<std::vector<Action>> ranks;    ///< by pipeline rank: its actions in order

  std::int32_t stages() const { return static_cast<std::int32_t>(stage_to_rank.size()); }
  std::int32_t rank_of_stage(std::int32_t stage) const { return stage_to_rank.at(index_of(stage)); }
  /// 0 .. chunks-1: the position of the stage among the stages of its rank, in model order.
  std::int32_t chunk_of_stage(std::int32_t stage) const {
    return stage_to_chunk.at(index_of(stage));
  }
  /// The inverse of the two above.
  std::int32_t stage_of(std::int32_t rank, std::int32_t chunk) const;
  /// True when the output of `stage` has to travel to another rank; false for the last stage.
  bool crosses_ranks_after(std::int32_t stage) const;

  friend bool operator==(const Schedule&, const Schedule&) = default;

 private:
  static std::size_t index_of(std::int32_t stage) { return static_cast<std::size_t>(stage); }
};

/// The compute actions of the requested schedule. UsageError with all problems() when it is
/// illegal.
Schedule make_schedule(const ScheduleRequest& request);

/// Only the actions that take compute time: what PyTorch calls the format "compute_only".
Schedule compute_only(const Schedule& schedule);

/// Joins every I that is directly followed by its own W into one B, as PyTorch does before a run:
/// a backward that is not split needs one pass over the saved tensors instead of two.
Schedule merge_backward(const Schedule& schedule);

}  // namespace lockstep
