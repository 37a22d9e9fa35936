#include "core/parameter_map.h"

#include <algorithm>

namespace lockstep {
namespace {

/// Local row -> row of the whole parameter, and how many rows follow on from there.
struct RowRun {
  std::int64_t logical = 0;
  std::int64_t count = 0;
};

/// Each part of a fused weight is cut by itself.
RowRun row_of_parts(const ParameterDef& parameter,
                    std::int64_t tensor,
                    std::int64_t coordinate,
                    std::int64_t row) {
  std::int64_t before = 0;  // rows of earlier parts, in the whole
  for (const std::int64_t part : parameter.parts) {
    const std::int64_t own = part / tensor;
    if (row < own) {
      return {before + coordinate * own + row, own - row};
    }
    row -= own;
    before += part;
  }
  return {parameter.rows, 0};
}

}  // namespace

ParameterMap::ParameterMap(const ParameterDef& parameter,
                           std::int64_t tensor,
                           std::int64_t coordinate)
    : parameter_(parameter),
      tensor_(tensor),
      coordinate_(coordinate),
      rows_(local_rows(parameter, tensor)),
      columns_(local_columns(parameter, tensor)) {}

ParameterRun ParameterMap::run_at(std::int64_t first, std::int64_t most) const {
  const std::int64_t row = first / columns_;
  const std::int64_t column = first % columns_;
  if (parameter_.cut == ParameterCut::kColumns) {
    const std::int64_t logical = row * parameter_.columns + coordinate_ * columns_ + column;
    return {first, logical, std::min(most, tensor_ == 1 ? most : columns_ - column)};
  }
  RowRun run{row, rows_ - row};
  if (parameter_.cut == ParameterCut::kRows && !parameter_.parts.empty()) {
    run = row_of_parts(parameter_, tensor_, coordinate_, row);
  } else if (parameter_.cut == ParameterCut::kRows) {
    run.logical += coordinate_ * rows_;
    if (run.logical >= parameter_.rows) {
      return {first, -1, most};  // padding of the vocabulary stands last
    }
    run.count = std::min(run.count, parameter_.rows - run.logical);
  }
  return {first,
          run.logical * parameter_.columns + column,
          std::min(most, run.count * columns_ - column)};
}

}  // namespace lockstep
