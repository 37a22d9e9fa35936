#include "core/layout.h"

#include <numeric>

#include <fmt/format.h>

#include "core/check.h"

namespace lockstep {

namespace {

void start(std::int32_t coordinates, Layout& layout) {
  LOCKSTEP_CHECK(coordinates >= 1, fmt::format("a layout over {} coordinates", coordinates));
  layout.entries.clear();
  layout.coordinates = coordinates;
  layout.elements_per_coordinate = 0;
}

void check_extent(const ParameterExtent& extent) {
  LOCKSTEP_CHECK(extent.rows >= 0 && extent.row_elements >= 0 && extent.outer >= 1 &&
                     extent.row_elements % extent.outer == 0,
                 fmt::format("parameter {} has {} rows of {} elements, {} outer",
                             extent.parameter,
                             extent.rows,
                             extent.row_elements,
                             extent.outer));
}

/// Appends an entry whose shards follow each other: every coordinate gets the same padded share.
void append_sharded(const ParameterExtent& extent, Layout& layout) {
  check_extent(extent);
  LOCKSTEP_CHECK(extent.outer == 1 || extent.rows % layout.coordinates == 0,
                 fmt::format("dimension {} of parameter {} has {} rows, not divisible by {}",
                             extent.dim,
                             extent.parameter,
                             extent.rows,
                             layout.coordinates));
  LayoutEntry entry;
  entry.parameter = extent.parameter;
  entry.dim = extent.dim;
  entry.rows = extent.rows;
  entry.rows_per_coordinate = ceil_divide(extent.rows, layout.coordinates);
  entry.row_elements = extent.row_elements;
  entry.flat_offset = layout.elements_per_coordinate;
  entry.outer = extent.outer;
  layout.elements_per_coordinate += entry.rows_per_coordinate * entry.row_elements;
  layout.entries.push_back(entry);
}

/// The parameter as a vector: one element is one row.
ParameterExtent flattened(const ParameterExtent& extent) {
  ParameterExtent flat;
  flat.parameter = extent.parameter;
  flat.rows = extent.elements();
  return flat;
}

}  // namespace

std::int64_t Layout::elements() const {
  std::int64_t sum = 0;
  for (const LayoutEntry& entry : entries) {
    sum += entry.elements();
  }
  return sum;
}

std::int64_t valid_elements(const Layout& layout, std::int32_t coordinate) {
  std::int64_t sum = 0;
  for (const LayoutEntry& entry : layout.entries) {
    sum += valid_rows(entry, coordinate) * entry.row_elements;
  }
  return sum;
}

void shard_dim0(std::span<const ParameterExtent> parameters,
                std::int32_t coordinates,
                Layout& layout) {
  start(coordinates, layout);
  for (const ParameterExtent& extent : parameters) {
    append_sharded(extent, layout);
  }
}

void flat_partition(std::span<const ParameterExtent> parameters,
                    std::int32_t coordinates,
                    FlatAlignment alignment,
                    Layout& layout) {
  start(coordinates, layout);
  LOCKSTEP_CHECK(alignment.start >= 1 && alignment.end >= 1 && alignment.end % coordinates == 0,
                 fmt::format("alignment {} and {} for {} equal partitions",
                             alignment.start,
                             alignment.end,
                             coordinates));
  std::int64_t end = 0;
  for (const ParameterExtent& extent : parameters) {
    check_extent(extent);
    LayoutEntry entry;
    entry.parameter = extent.parameter;
    entry.rows = extent.elements();
    entry.row_shift = round_up(end, alignment.start);
    end = entry.row_shift + entry.rows;
    layout.entries.push_back(entry);
  }
  layout.elements_per_coordinate = round_up(end, alignment.end) / coordinates;
  for (LayoutEntry& entry : layout.entries) {
    entry.rows_per_coordinate = layout.elements_per_coordinate;
  }
}

void flat_per_parameter(std::span<const ParameterExtent> parameters,
                        std::int32_t coordinates,
                        Layout& layout) {
  start(coordinates, layout);
  for (const ParameterExtent& extent : parameters) {
    append_sharded(flattened(extent), layout);
  }
}

void bucket_layout(std::span<const ParameterExtent> parameters, Layout& layout) {
  shard_dim0(parameters, 1, layout);  // one coordinate: nothing is cut and nothing is padded
}

void distributed_optimizer_bucket(std::span<const ParameterExtent> parameters,
                                  std::int32_t data_parallel,
                                  bool high_bus_bandwidth,
                                  Layout& layout) {
  flat_partition(
      parameters,
      data_parallel,
      {kDistributedOptimizerStart, distributed_optimizer_end(data_parallel, high_bus_bandwidth)},
      layout);
}

std::int64_t distributed_optimizer_end(std::int32_t data_parallel, bool high_bus_bandwidth) {
  LOCKSTEP_CHECK(data_parallel >= 1, fmt::format("data parallel size {}", data_parallel));
  // 128 elements of at least 16 bits are 256 bytes, the alignment that cuBLAS likes; a ring's
  // message is bucket / dp, and NCCL is fastest when a large power of two divides it.
  const std::int64_t end = std::lcm<std::int64_t, std::int64_t>(data_parallel, 128);
  return high_bus_bandwidth ? std::lcm<std::int64_t, std::int64_t>(end, 65536) : end;
}

}  // namespace lockstep
