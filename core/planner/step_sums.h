// StepSums: a step put together from fragments: what each forward and backward of a stage amounts
// to, and where along a StageWalk memory stands highest, named by the operation after it.
//
// Heights are compared as totals; bytes by category are added up once, for the highest point.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/planner/segment_fragments.h"
#include "core/planner/stage_walk.h"

namespace lockstep {

/// What module numbers of a fragment are relative to.
enum class PieceBase : std::uint8_t { kAbsolute, kEmbedding, kBlock, kHead };

/// Fragments that follow each other, for `times` segments.
struct PieceGroup {
  PieceBase base = PieceBase::kAbsolute;
  std::int32_t times = 1;
  std::int32_t block = 0;  ///< of the chunk, in the first run
  std::int32_t step = 0;   ///< of the block from run to run
  // Filled in by StepSums::add.
  std::uint32_t first = 0;  ///< into StepSums::fragments
  std::uint32_t count = 0;
  std::int64_t delta = 0;  ///< of one run
  std::int32_t peak_run = 0;
  std::uint32_t peak_fragment = 0;
};

/// Totals of a pass or message: what decides where the peak is.
struct PassHeight {
  std::int64_t delta = 0;
  std::int64_t peak = 0;  ///< above its start; 0 = never above
};

/// One pass of a stage, or one message.
struct PassSum {
  std::uint32_t first = 0;  ///< into StepSums::groups
  std::uint32_t count = 0;
  std::uint32_t peak_group = 0;
  std::int64_t operations = 0;
  CategoryBytes bytes{};  ///< delta by category
};

/// All that the ranks of one kind of stage share.
struct StepSums {
  CategoryBytes at_start{};
  const Fragment* begin = nullptr;
  const Fragment* end = nullptr;
  std::vector<PassHeight> heights;  ///< by symbol of the walk
  std::vector<PassSum> passes;      ///< by symbol of the walk
  std::vector<PieceGroup> groups;
  std::vector<const Fragment*> fragments;

  /// Empties it. Passes that are not begun are not to be looked at.
  void clear(std::size_t symbols);
  /// Groups added from now on belong to the pass `symbol`.
  void begin_pass(std::size_t symbol);
  /// Appends a group of fragments (null = nothing to do), unless nothing is in it.
  void add(PieceGroup group, std::span<const Fragment* const> parts);

 private:
  std::size_t pass_ = 0;
};

/// Where a stage stands in the model.
struct StagePlace {
  std::int32_t head_module = 0;  ///< first module of the head
  std::int32_t modules_per_block = 0;
  std::vector<std::int32_t> first_block_module;  ///< by chunk
};

/// The highest point of a step.
MemoryPeak highest(const StepSums& sums, const StageWalk& walk, const StagePlace& place);

}  // namespace lockstep
