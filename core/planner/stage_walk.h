// StageWalk: the order of one pipeline rank's passes and messages, folded: a schedule of 64
// micro-batches is a few stretches that repeat a short pattern.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/planner/schedule/schedule.h"
#include "core/planner/segment_fragments.h"

namespace lockstep {

/// A forward or a whole backward, by its order among the micro-batches, or a message.
inline constexpr int kWalkSymbols = std::size_t{2} * kPieceOrderCount + 4;
constexpr std::size_t forward_symbol(PieceOrder order) {
  return static_cast<std::size_t>(order);
}
constexpr std::size_t backward_symbol(PieceOrder order) {
  return kPieceOrderCount + static_cast<std::size_t>(order);
}
constexpr std::size_t message_symbol(PieceKind kind) {
  return std::size_t{2} * kPieceOrderCount + static_cast<std::size_t>(kind) -
         static_cast<std::size_t>(PieceKind::kSendForward);
}

struct WalkStep {
  std::uint8_t symbol = 0;
  std::int32_t microbatch = 0;  ///< in the first run of its stretch
  std::int32_t move = 0;        ///< of the micro-batch from run to run
};

/// Steps [first, first + count), `times` times.
struct WalkStretch {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::int64_t times = 1;
};

struct StageWalk {
  std::vector<WalkStep> steps;
  std::vector<WalkStretch> stretches;
  std::array<std::int64_t, kWalkSymbols> totals{};  ///< how often each symbol comes
};

/// Order of pass number `done` of `microbatches`.
constexpr PieceOrder order_of(std::int32_t done, std::int32_t microbatches) {
  return done == 0 ? (microbatches == 1 ? PieceOrder::kOnly : PieceOrder::kFirst)
                   : (done + 1 == microbatches ? PieceOrder::kLast : PieceOrder::kMiddle);
}

/// The walk of a rank with one chunk whose backward is not split.
StageWalk stage_walk(const Schedule& schedule, std::int32_t rank);
/// Without a pipeline: each micro-batch forward, then backward.
StageWalk stage_walk(std::int32_t microbatches);

}  // namespace lockstep
