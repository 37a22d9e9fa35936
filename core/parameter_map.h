// ParameterMap: where the elements that a tensor-parallel rank holds of a parameter stand in the
// whole one. What gives every sharding of a model the same initial numbers, and names the boxes of
// a checkpoint so that any other sharding can read them.
//
// It knows nothing of data-parallel shards: their pieces (core/layout.h) are ranges of the elements
// that this maps.
#pragma once

#include <cstdint>

#include "core/model_graph.h"

namespace lockstep {

/// Elements that follow each other both on the rank and in the whole parameter, row-major.
struct ParameterRun {
  std::int64_t local = 0;    ///< first element on the rank
  std::int64_t logical = 0;  ///< first element of the whole, unpadded parameter
  std::int64_t elements = 0;
};

/// One rank's part of a parameter under a cut over `tensor` ranks.
class ParameterMap {
 public:
  ParameterMap(const ParameterDef& parameter, std::int64_t tensor, std::int64_t coordinate);

  /// Elements on the rank, with padding rows of a vocabulary.
  std::int64_t elements() const { return rows_ * columns_; }

  /// Calls visit(const ParameterRun&) for what lies in local elements [first, first + count), in
  /// rising order; padding has no run.
  template <typename Visit>
  void for_each_run(std::int64_t first, std::int64_t count, Visit&& visit) const {
    const std::int64_t end = first + count;
    while (first < end) {
      const ParameterRun run = run_at(first, end - first);
      if (run.logical >= 0) {
        visit(run);
      }
      first += run.elements;
    }
  }

 private:
  /// The longest run from local element `first` on; logical is -1 where it is padding.
  ParameterRun run_at(std::int64_t first, std::int64_t most) const;

  const ParameterDef& parameter_;
  std::int64_t tensor_;
  std::int64_t coordinate_;
  std::int64_t rows_;
  std::int64_t columns_;
};

}  // namespace lockstep
