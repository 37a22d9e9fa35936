// ShardsText: units of sharded parameters on one rank drawn in a terminal, the text twin of the
// shard view: two rows for each unit, its parameters and its gradients, and memory below.
//
//                       0 ms         5            10
//   embedding+head   p  <<UUUoooooooooooooooUU........
//                    g  ................#####>>*****..
//   h.0              p  ..<<UU.........<<UU...........
#pragma once

#include <optional>
#include <string>

#include "visualizer/models/memory_stack.h"
#include "visualizer/models/shards.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {

/// The letter of a stage.
char letter_of(ShardStage stage);

/// `at`: a moment whose state is listed too. `memory`: of the same rank, for the curve.
std::string shards_text(const Shards& shards,
                        const MemoryStack& memory,
                        std::optional<Nanoseconds> at = {},
                        const TextOptions& options = {});

}  // namespace lockstep::view
