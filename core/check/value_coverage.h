// Value coverage: which elements of which parameters something has seen, as intervals. Used for
// "every logical element is owned", "the overflow flag has looked at all gradients" and "the
// checkpoint has everything".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/check/value_memory.h"
#include "core/model_graph.h"

namespace lockstep {

/// The id under which all copies of a tied parameter go.
std::int32_t canonical_parameter(const ModelGraph& graph, std::int32_t parameter);
/// Elements of one of `of` tensor-parallel slices, padding of the vocabulary included.
std::int64_t slice_elements(const ModelGraph& graph, std::int32_t parameter, std::int32_t of);
/// "h.0.mlp.c_fc.weight", with the slice where it is one.
std::string parameter_text(const ModelGraph& graph,
                           std::int32_t parameter,
                           const ValueSymbol& symbol);

class ValueCoverage {
 public:
  void add(std::int32_t parameter, const ValueSymbol& from, std::int64_t elements);
  void add(const ValueCoverage& other);
  bool empty() const { return intervals_.empty(); }
  /// Depends on the elements covered, not on the order in which they came.
  field::Number number() const;
  /// What of the model is missing, in words; empty when nothing is.
  std::string missing(const ModelGraph& graph) const;

 private:
  struct Interval {
    std::int32_t parameter = 0;
    std::int32_t of = 1;
    std::int32_t index = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool operator==(const Interval&) const = default;
    auto operator<=>(const Interval&) const = default;
  };
  void add(const Interval& interval);
  std::string missing(const ModelGraph& graph, std::int32_t parameter, std::size_t& next) const;

  std::vector<Interval> intervals_;  ///< sorted, disjoint, not touching
};

}  // namespace lockstep
