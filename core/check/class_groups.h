// Class groups: the groups of a communicator as seen by classes of ranks.
//
// Ranks of one class run one program, so a group matters only by the classes of its members. Those
// follow from the mesh: coordinates outside the communicator's axes are fixed within a group, those
// on them take all values. Hence every class lies in exactly one combination per communicator.
#pragma once

#include <array>
#include <vector>

#include "core/plan.h"

namespace lockstep {

/// Coordinates of a class by axis; kFree where ranks of the class differ.
using ClassCoordinates = std::array<int, kViewAxisCount>;
inline constexpr int kFreeCoordinate = -1;

std::vector<ClassCoordinates> coordinates_of_classes(const Plan& plan);

/// First and last coordinate on `axis` that a rank of the class can have; {0, 0} on Axis::kNone.
struct CoordinateRange {
  int first = 0;
  int last = 0;
};
CoordinateRange coordinate_range(const Plan& plan, const ClassCoordinates& coordinates, Axis axis);

/// The class whose coordinate on the pipeline axis is `stage`, else as `class_index`; -1 when the
/// plan has no such stage or its classes span stages.
int class_at_stage(const Plan& plan, int class_index, int stage);

/// Whether the communicator keeps this pipeline coordinate.
bool keeps_stage(const Communicator& communicator, int stage);

struct ClassGroups {
  static constexpr int kNotMember = -1;
  std::vector<int> group_of_class;       ///< index into `groups`, or kNotMember
  std::vector<std::vector<int>> groups;  ///< member classes, ascending
  int members = 0;                       ///< ranks of one group
};

/// By communicator of the plan.
std::vector<ClassGroups> class_groups(const Plan& plan,
                                      const std::vector<ClassCoordinates>& coordinates);

/// The smallest rank of class `class_index` in the group of `rank`, which has one.
int rank_in_group(const Plan& plan, const Communicator& communicator, int rank, int class_index);

}  // namespace lockstep
