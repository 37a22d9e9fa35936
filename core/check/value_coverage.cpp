#include "core/check/value_coverage.h"

#include <algorithm>

#include <fmt/format.h>

namespace lockstep {

std::int32_t canonical_parameter(const ModelGraph& graph, std::int32_t parameter) {
  return graph.parameter(parameter).tied ? 0 : parameter;
}

std::int64_t slice_elements(const ModelGraph& graph, std::int32_t parameter, std::int32_t of) {
  const ParameterDef& definition = graph.parameter(parameter);
  return of == 1 ? definition.rows * definition.columns
                 : local_rows(definition, of) * local_columns(definition, of);
}

std::string parameter_text(const ModelGraph& graph,
                           std::int32_t parameter,
                           const ValueSymbol& symbol) {
  std::string text = graph.parameter_name(parameter);
  if (symbol.of > 1) {
    text += fmt::format(" (tp slice {} of {})", symbol.index, symbol.of);
  }
  return text;
}

void ValueCoverage::add(std::int32_t parameter, const ValueSymbol& from, std::int64_t elements) {
  add({parameter, from.of, from.index, from.begin, from.begin + elements});
}

void ValueCoverage::add(const ValueCoverage& other) {
  for (const Interval& interval : other.intervals_) {
    add(interval);
  }
}

void ValueCoverage::add(const Interval& interval) {
  if (interval.begin >= interval.end) {
    return;
  }
  const auto same_tensor = [](const Interval& a, const Interval& b) {
    return a.parameter == b.parameter && a.of == b.of && a.index == b.index;
  };
  auto at = std::lower_bound(intervals_.begin(), intervals_.end(), interval);
  if (at != intervals_.begin() && same_tensor(*(at - 1), interval) &&
      (at - 1)->end >= interval.begin) {
    --at;
    at->end = std::max(at->end, interval.end);
  } else {
    at = intervals_.insert(at, interval);
  }
  auto last = at + 1;
  while (last != intervals_.end() && same_tensor(*last, *at) && last->begin <= at->end) {
    at->end = std::max(at->end, last->end);
    ++last;
  }
  intervals_.erase(at + 1, last);
}

field::Number ValueCoverage::number() const {
  if (intervals_.empty()) {
    return 0;
  }
  field::Hash hash(0x636f7665ULL);
  for (const Interval& interval : intervals_) {
    hash.add(static_cast<std::uint64_t>(interval.parameter))
        .add(static_cast<std::uint64_t>(interval.of))
        .add(static_cast<std::uint64_t>(interval.index))
        .add(static_cast<std::uint64_t>(interval.begin))
        .add(static_cast<std::uint64_t>(interval.end));
  }
  return hash.number();
}

std::string ValueCoverage::missing(const ModelGraph& graph) const {
  std::size_t next = 0;
  for (std::int32_t parameter = 0; parameter < graph.parameter_total(); ++parameter) {
    if (canonical_parameter(graph, parameter) != parameter) {
      continue;
    }
    while (next < intervals_.size() && intervals_[next].parameter < parameter) {
      ++next;
    }
    std::string text = missing(graph, parameter, next);
    if (!text.empty()) {
      return text;
    }
  }
  return {};
}

/// A parameter is there if it is whole, or all its slices are.
std::string ValueCoverage::missing(const ModelGraph& graph,
                                   std::int32_t parameter,
                                   std::size_t& next) const {
  if (next == intervals_.size() || intervals_[next].parameter != parameter) {
    return fmt::format("{} is missing", graph.parameter_name(parameter));
  }
  const std::int32_t of = intervals_[next].of;
  const std::int64_t elements = slice_elements(graph, parameter, of);
  for (std::int32_t index = 0; index < of; ++index, ++next) {
    const bool complete = next < intervals_.size() && intervals_[next].parameter == parameter &&
                          intervals_[next].of == of && intervals_[next].index == index &&
                          intervals_[next].begin <= 0 && intervals_[next].end >= elements;
    if (!complete) {
      return fmt::format("{} is incomplete", parameter_text(graph, parameter, {0, 0, index, of}));
    }
  }
  return {};
}

}  // namespace lockstep
