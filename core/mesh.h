// Mesh: named axes over ranks. The last axis is innermost (neighbouring ranks), as in Megatron-LM's
// default order: tensor parallel fastest, then context, data, pipeline slowest. Every process group
// is a slice of the mesh, named by the mask of the axes along which its members differ.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace lockstep {

/// In order from outermost to innermost. Hybrid sharding uses the first two data axes
/// (replicas outside, shards inside); every other strategy uses kData alone.
/// kAllData is no axis of its own but both data axes read as one, for views of what is cut over all
/// data-parallel ranks.
enum class Axis : std::uint8_t {
  kPipeline,
  kDataReplica,
  kData,
  kContext,
  kTensor,
  kAllData,
  kNone
};
inline constexpr int kAxisCount = 5;
/// Axes that a view may name: those of the mesh and kAllData.
inline constexpr int kViewAxisCount = 6;

using AxisMask = std::uint8_t;
constexpr AxisMask mask_of(Axis axis) {
  return static_cast<AxisMask>(1U << static_cast<unsigned>(axis));
}
/// Axes that have more than one coordinate.
class Mesh;
AxisMask present_axes(const Mesh& mesh);
/// All data-parallel coordinates: replicas and shards.
inline constexpr AxisMask kDataAxes = mask_of(Axis::kDataReplica) | mask_of(Axis::kData);

std::string_view name_of(Axis axis);

class Mesh {
 public:
  Mesh() { sizes_.fill(1); }
  void set(Axis axis, int size) { sizes_[static_cast<std::size_t>(axis)] = size; }
  int size(Axis axis) const {
    return axis == Axis::kAllData ? size(Axis::kDataReplica) * size(Axis::kData)
                                  : sizes_[static_cast<std::size_t>(axis)];
  }
  int world_size() const;
  /// Coordinate of `rank` on `axis`; 0 on Axis::kNone.
  int coordinate(int rank, Axis axis) const;
  /// Product of the sizes of the axes in `mask`.
  int count(AxisMask mask) const;
  /// Mixed-radix index of the coordinates of `rank` on the axes in `mask`, outermost first.
  int index(AxisMask mask, int rank) const;
  /// Ranks that differ from `rank` only on the axes in `mask`, ascending.
  std::vector<int> group(AxisMask mask, int rank) const;
  /// All groups of that kind, each ascending, ordered by their first member.
  std::vector<std::vector<int>> groups(AxisMask mask) const;
  /// `rank` with its coordinate on `axis` replaced.
  int with(int rank, Axis axis, int coordinate) const;

 private:
  int stride(Axis axis) const;
  std::array<int, kAxisCount> sizes_{};
};

}  // namespace lockstep
