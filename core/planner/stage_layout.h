// StageLayout: the part of the model on one pipeline rank, and loops over it.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model_graph.h"
#include "core/planner/program_builder.h"

namespace lockstep {

struct StageLayout {
  std::int32_t coordinate = 0;  ///< pipeline coordinate
  /// Graph segments in model order inside each chunk, chunk after chunk.
  std::vector<std::int32_t> segments;
  std::vector<std::int32_t> chunk_begin;  ///< indices into segments; chunks + 1 entries
  bool has_embedding = false;
  bool has_head = false;
  bool tied_across_stages = false;  ///< this stage holds one of the two copies of a tied weight

  int chunks() const { return static_cast<int>(chunk_begin.size()) - 1; }
  int begin(int chunk) const { return chunk_begin[static_cast<std::size_t>(chunk)]; }
  int end(int chunk) const { return chunk_begin[static_cast<std::size_t>(chunk) + 1]; }
  std::int32_t segment(int position) const { return segments[static_cast<std::size_t>(position)]; }
};

/// Positions [first, last) of a chunk whose segments all have one form: the blocks.
struct PositionRange {
  int first = 0;
  int last = 0;
};
PositionRange block_range(const ModelGraph& graph, const StageLayout& stage, int chunk);

/// body(position) for the positions of a chunk in model order (or reversed). Blocks run under
/// ProgramBuilder::repeat when `uniform`: all middle blocks must then behave alike.
template <typename Body>
void for_each_position(ProgramBuilder& b,
                       const StageLayout& stage,
                       int chunk,
                       bool reverse,
                       bool uniform,
                       Body&& body) {
  const PositionRange all{stage.begin(chunk), stage.end(chunk)};
  const PositionRange blocks =
      uniform ? block_range(b.graph(), stage, chunk) : PositionRange{all.first, all.first};
  if (reverse) {
    for (int position = all.last - 1; position >= blocks.last; --position) {
      body(position);
    }
    b.repeat_reverse(blocks.last - blocks.first,
                     [&](std::int64_t i) { body(blocks.first + static_cast<int>(i)); });
    for (int position = blocks.first - 1; position >= all.first; --position) {
      body(position);
    }
    return;
  }
  for (int position = all.first; position < blocks.first; ++position) {
    body(position);
  }
  b.repeat(blocks.last - blocks.first,
           [&](std::int64_t i) { body(blocks.first + static_cast<int>(i)); });
  for (int position = blocks.last; position < all.last; ++position) {
    body(position);
  }
}

}  // namespace lockstep
