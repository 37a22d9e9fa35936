// StepSums: a step put together from fragments: what each forward and backward of a stage amounts
// to, and where along a StageWalk memory stands highest, named by the operation after it.
//
// Heights are compared as totals; bytes by category are added up once, for the highest point.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/planner/segment_fragments.h"
#include "core/planner/stage_walk.h"

namespace lockstep {

/// What module numbers of a fragment are relative to.
enum class PieceBase : std::uint8_t { kAbsolute, kEmbedding, kBlock, kHead };

/// Fragments of one segment, for `times` segments.
struct PieceGroup {
  std::array<const Fragment*, 3> fragments{};
  std::int32_t count = 0;
  std::int32_t times = 1;
  PieceBase base = PieceBase::kAbsolute;
  std::int32_t block = 0;  ///< of the stage, in the first run
  std::int32_t step = 0;   ///< of the block from run to run
  // Derived.
  std::int64_t delta = 0;  ///< of one run
  std::int32_t peak_run = 0;
  std::int32_t peak_fragment = 0;

  void add(const Fragment* fragment) {
    if (fragment != nullptr) {
      fragments[static_cast<std::size_t>(count++)] = fragment;
    }
  }
};

/// One pass of a stage, or one message.
struct PassSum {
  std::array<PieceGroup, 7> groups;
  std::int32_t count = 0;
  std::int32_t peak_group = 0;
  std::int64_t delta = 0;
  std::int64_t peak = 0;  ///< above its start; 0 = never above
  CategoryBytes bytes{};  ///< delta by category

  void clear() {
    count = peak_group = 0;
    delta = peak = 0;
    bytes = {};
  }
  /// Appends a group, unless nothing is in it.
  void add(PieceGroup group);
};

/// All that the ranks of one kind of stage share.
struct StepSums {
  CategoryBytes at_start{};
  const Fragment* begin = nullptr;
  const Fragment* end = nullptr;
  std::array<PassSum, kWalkSymbols> passes;
};

/// Where a stage stands in the model.
struct StagePlace {
  std::int32_t head_module = 0;         ///< first module of the head
  std::int32_t first_block_module = 0;  ///< of the stage's first block
  std::int32_t modules_per_block = 0;
};

/// The highest point of a step.
MemoryPeak highest(const StepSums& sums, const StageWalk& walk, const StagePlace& place);

}  // namespace lockstep
