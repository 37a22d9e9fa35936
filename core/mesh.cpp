#include "core/mesh.h"

namespace lockstep {

std::string_view name_of(Axis axis) {
  static constexpr std::string_view kNames[] = {
      "pp", "dp_replicate", "dp", "cp", "tp", "dp", "none"};
  return kNames[static_cast<std::size_t>(axis)];
}

int Mesh::world_size() const {
  int product = 1;
  for (const int size : sizes_) {
    product *= size;
  }
  return product;
}

int Mesh::stride(Axis axis) const {
  int product = 1;
  for (int inner = static_cast<int>(axis) + 1; inner < kAxisCount; ++inner) {
    product *= sizes_[static_cast<std::size_t>(inner)];
  }
  return product;
}

int Mesh::coordinate(int rank, Axis axis) const {
  if (axis == Axis::kAllData) {
    return coordinate(rank, Axis::kDataReplica) * size(Axis::kData) + coordinate(rank, Axis::kData);
  }
  return axis == Axis::kNone ? 0 : rank / stride(axis) % size(axis);
}

int Mesh::count(AxisMask mask) const {
  int product = 1;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if ((mask & mask_of(static_cast<Axis>(axis))) != 0) {
      product *= sizes_[static_cast<std::size_t>(axis)];
    }
  }
  return product;
}

int Mesh::index(AxisMask mask, int rank) const {
  int result = 0;
  for (int number = 0; number < kAxisCount; ++number) {
    const Axis axis = static_cast<Axis>(number);
    if ((mask & mask_of(axis)) != 0) {
      result = result * size(axis) + coordinate(rank, axis);
    }
  }
  return result;
}

int Mesh::with(int rank, Axis axis, int coordinate_on_axis) const {
  return rank + (coordinate_on_axis - coordinate(rank, axis)) * stride(axis);
}

std::vector<int> Mesh::group(AxisMask mask, int rank) const {
  // Start at the member whose coordinates on the mask are all 0, then enlarge axis by axis from the
  // outermost: the result is ascending because inner axes have smaller strides.
  int first = rank;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if ((mask & mask_of(static_cast<Axis>(axis))) != 0) {
      first = with(first, static_cast<Axis>(axis), 0);
    }
  }
  std::vector<int> members{first};
  for (int number = 0; number < kAxisCount; ++number) {
    const Axis axis = static_cast<Axis>(number);
    if ((mask & mask_of(axis)) == 0) {
      continue;
    }
    std::vector<int> larger;
    larger.reserve(members.size() * static_cast<std::size_t>(size(axis)));
    for (const int member : members) {
      for (int c = 0; c < size(axis); ++c) {
        larger.push_back(with(member, axis, c));
      }
    }
    members = std::move(larger);
  }
  return members;
}

std::vector<std::vector<int>> Mesh::groups(AxisMask mask) const {
  std::vector<std::vector<int>> result;
  for (int rank = 0; rank < world_size(); ++rank) {
    if (index(mask, rank) == 0) {  // the first member of its group
      result.push_back(group(mask, rank));
    }
  }
  return result;
}

AxisMask present_axes(const Mesh& mesh) {
  AxisMask mask = 0;
  for (int number = 0; number < kAxisCount; ++number) {
    const Axis axis = static_cast<Axis>(number);
    if (mesh.size(axis) > 1) {
      mask = static_cast<AxisMask>(mask | mask_of(axis));
    }
  }
  return mask;
}

}  // namespace lockstep
