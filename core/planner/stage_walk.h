// StageWalk: the order of one pipeline rank's passes and messages, folded: a schedule of 64
// micro-batches is a few stretches that repeat a short pattern.
#pragma once

#include <cstdint>
#include <vector>

#include "core/planner/schedule/schedule.h"
#include "core/planner/segment_fragments.h"

namespace lockstep {

/// A backward is whole, or its input half; then the weight half is a pass of its own.
enum class PassKind : std::uint8_t { kForward, kBackward, kWeight };
inline constexpr std::size_t kPassKindCount = 3;
inline constexpr std::size_t kMessageCount = 4;

/// What a step of a walk is: a pass of a chunk, by its order among the micro-batches, or a message.
inline constexpr std::size_t kChunkSymbols = kPassKindCount * kPieceOrderCount + kMessageCount;
constexpr std::size_t pass_symbol(std::size_t chunk, PassKind kind, PieceOrder order) {
  return chunk * kChunkSymbols + static_cast<std::size_t>(kind) * kPieceOrderCount +
         static_cast<std::size_t>(order);
}
constexpr std::size_t message_symbol(std::size_t chunk, std::size_t message) {
  return chunk * kChunkSymbols + kPassKindCount * kPieceOrderCount + message;
}

struct WalkStep {
  std::uint32_t symbol = 0;
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
  std::vector<std::int64_t> totals;  ///< how often each symbol comes
};

/// Order of pass number `done` of `microbatches`.
constexpr PieceOrder order_of(std::int32_t done, std::int32_t microbatches) {
  return done == 0 ? (microbatches == 1 ? PieceOrder::kOnly : PieceOrder::kFirst)
                   : (done + 1 == microbatches ? PieceOrder::kLast : PieceOrder::kMiddle);
}

/// The walk of a rank.
StageWalk stage_walk(const Schedule& schedule, std::int32_t rank);
/// Without a pipeline: each micro-batch forward, then backward.
StageWalk stage_walk(std::int32_t microbatches);

}  // namespace lockstep
