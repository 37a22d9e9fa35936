// Layout: which part of which parameter each coordinate of a sharding axis holds, and where in its
// flat buffer. One layout describes all ranks by a rule, so short and empty shards need no table.
//
// A layout is data for `pack` and `unpack` (FSDP units, ZeRO partitions, DDP and Megatron buckets),
// for the valid element counts of optimizer steps and norms, and for the boxes of a checkpoint. It
// knows no dtype, no rank and no collective.
//
//     Layout layout;
//     shard_dim0(parameters, 4, layout);
//     for_each_piece(layout, rank, [&](const LayoutPiece& piece) { copy(piece); });
//
// Builders overwrite the layout that they are given and keep its memory, so that a caller that
// builds many reuses one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lockstep {

/// Smallest integer >= dividend / divisor, for dividend >= 0 and divisor > 0.
constexpr std::int64_t ceil_divide(std::int64_t dividend, std::int64_t divisor) {
  return dividend / divisor + (dividend % divisor != 0 ? 1 : 0);
}

/// Smallest multiple of `multiple` that is >= value.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return ceil_divide(value, multiple) * multiple;
}

/// A parameter as a layout sees it: `rows` slices along dimension `dim`.
struct ParameterExtent {
  std::int32_t parameter = 0;     ///< caller's id, copied into the entry
  std::int64_t rows = 0;          ///< extent of dimension `dim`; 1 for a scalar
  std::int64_t row_elements = 1;  ///< elements / rows
  std::int32_t dim = 0;
  std::int64_t outer = 1;  ///< product of the extents in front of `dim`; 1 when dim is 0

  constexpr std::int64_t elements() const { return rows * row_elements; }
};

/// One parameter inside a layout.
///
/// The rows of the parameter are cut on a ruler with a mark every `rows_per_coordinate` rows; the
/// parameter lies on it from `row_shift` on, and coordinate c holds what lies between marks c and
/// c + 1. Shards that follow the parameter have row_shift 0, hence
/// clamp(rows - c * rows_per_coordinate, 0, rows_per_coordinate) valid rows. Partitions that cross
/// parameter borders (ZeRO, FSDP1, Megatron) lay all parameters on one ruler: there row_shift is
/// the place in the concatenation and a row is one element, because a cut may fall anywhere.
struct LayoutEntry {
  std::int32_t parameter = 0;
  std::int32_t dim = 0;
  std::int64_t rows = 0;
  std::int64_t rows_per_coordinate = 0;
  std::int64_t row_elements = 1;
  std::int64_t flat_offset = 0;  ///< elements from the start of a coordinate's buffer
  std::int64_t row_shift = 0;    ///< rows on the ruler in front of the parameter
  std::int64_t outer = 1;        ///< as in ParameterExtent
  /// Axis mask (core/mesh.h): the global gradient norm counts the entry only where all these
  /// coordinates are 0, because the other ranks hold copies. kNotInNorm: only copies, not counted.
  std::uint8_t norm_axes = 0;

  constexpr std::int64_t elements() const { return rows * row_elements; }
};

inline constexpr std::uint8_t kNotInNorm = 0xff;

struct Layout {
  std::vector<LayoutEntry> entries;  ///< in the order of the flat buffer
  std::int32_t coordinates = 1;      ///< number of shards
  /// Elements, with padding, that every coordinate carries: the stride of a view over the axis.
  std::int64_t elements_per_coordinate = 0;

  /// Elements of the parameters, each once, without padding.
  std::int64_t elements() const;
  /// Elements of all coordinates together, with padding: the size of the gathered buffer.
  std::int64_t padded_elements() const { return coordinates * elements_per_coordinate; }
  std::int64_t padding_elements() const { return padded_elements() - elements(); }
};

/// Rows [first, first + count) of a parameter.
struct RowRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// The rows of the entry that `coordinate` holds; count 0 when it holds none.
constexpr RowRange rows_of(const LayoutEntry& entry, std::int32_t coordinate) {
  const std::int64_t mark = coordinate * entry.rows_per_coordinate - entry.row_shift;
  const std::int64_t begin = std::clamp<std::int64_t>(mark, 0, entry.rows);
  const std::int64_t end =
      std::clamp<std::int64_t>(mark + entry.rows_per_coordinate, 0, entry.rows);
  return {begin, end - begin};
}

constexpr std::int64_t valid_rows(const LayoutEntry& entry, std::int32_t coordinate) {
  return rows_of(entry, coordinate).count;
}

/// Elements of `coordinate` that belong to a parameter; the rest of its buffer is padding.
std::int64_t valid_elements(const Layout& layout, std::int32_t coordinate);

/// A run of elements that is contiguous both in the parameter and in a coordinate's buffer.
struct LayoutPiece {
  std::int32_t parameter = 0;
  std::int64_t first = 0;     ///< logical element of the (row-major) parameter
  std::int64_t elements = 0;  ///< > 0
  std::int64_t offset = 0;    ///< element in the coordinate's buffer
};

/// Calls visit(const LayoutPiece&) for every run of `entry` that `coordinate` holds.
template <typename Visit>
void for_each_piece(const LayoutEntry& entry, std::int32_t coordinate, Visit&& visit) {
  const RowRange range = rows_of(entry, coordinate);
  if (range.count == 0 || entry.row_elements == 0) {
    return;
  }
  // Where the range begins between its two marks is where its elements begin in the buffer.
  const std::int64_t skipped =
      range.first + entry.row_shift - coordinate * entry.rows_per_coordinate;
  const std::int64_t offset = entry.flat_offset + skipped * entry.row_elements;
  // A whole parameter is one run, whatever dimension it is cut along.
  const std::int64_t runs = range.count == entry.rows ? 1 : entry.outer;
  const std::int64_t row_run = entry.row_elements / runs;  // elements of one row in one run
  for (std::int64_t run = 0; run < runs; ++run) {
    visit(LayoutPiece{entry.parameter,
                      (run * entry.rows + range.first) * row_run,
                      range.count * row_run,
                      offset + run * range.count * row_run});
  }
}

/// The same for all entries; offsets rise from call to call.
template <typename Visit>
void for_each_piece(const Layout& layout, std::int32_t coordinate, Visit&& visit) {
  for (const LayoutEntry& entry : layout.entries) {
    for_each_piece(entry, coordinate, visit);
  }
}

/// FSDP2 (torch.distributed.fsdp.fully_shard): each parameter is cut along its dimension as by
/// torch.chunk, ceil(rows / N) rows per coordinate, so that the last shards are short or empty;
/// every shard is padded to the size of the first one, and the shards of a group follow each other.
/// A dimension other than 0 must be divisible by N, as fully_shard demands.
void shard_dim0(std::span<const ParameterExtent> parameters,
                std::int32_t coordinates,
                Layout& layout);

/// How parameters are laid one behind the other before they are cut into equal parts.
struct FlatAlignment {
  std::int64_t start = 1;  ///< every parameter starts at a multiple of this many elements
  std::int64_t end = 1;    ///< the total is padded to a multiple of this; itself a multiple of N
};

/// All parameters concatenated, padded, and cut into N equal contiguous partitions that cross
/// parameter borders. {1, N} is the ZeRO paper (Rajbhandari et al. 2020, 5.1) and FSDP1's
/// FlatParameter, {1, 2 * N} is DeepSpeed stages 1 and 2 (stage_1_and_2.py: partitions aligned to
/// 4 bytes of fp16).
void flat_partition(std::span<const ParameterExtent> parameters,
                    std::int32_t coordinates,
                    FlatAlignment alignment,
                    Layout& layout);

/// DeepSpeed stage 3 (partition_parameters.py): each parameter is flattened and cut into
/// ceil(elements / N) elements per coordinate, the last one padded.
void flat_per_parameter(std::span<const ParameterExtent> parameters,
                        std::int32_t coordinates,
                        Layout& layout);

/// A DDP bucket: the parameters one behind the other, whole on every rank (one coordinate).
void bucket_layout(std::span<const ParameterExtent> parameters, Layout& layout);

/// A bucket of Megatron-LM's distributed optimizer (param_and_grad_buffer.py): parameters start at
/// multiples of 64 elements, the bucket ends at a multiple of lcm(dp, 128), with
/// pad_buckets_for_high_nccl_busbw of lcm(dp, 128, 65536); reduce-scattered in place.
void distributed_optimizer_bucket(std::span<const ParameterExtent> parameters,
                                  std::int32_t data_parallel,
                                  bool high_bus_bandwidth,
                                  Layout& layout);

/// Elements between the starts of parameters in a distributed optimizer bucket.
inline constexpr std::int64_t kDistributedOptimizerStart = 64;

/// The multiple to which a distributed optimizer bucket is padded.
std::int64_t distributed_optimizer_end(std::int32_t data_parallel, bool high_bus_bandwidth);

}  // namespace lockstep
