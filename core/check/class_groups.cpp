#include "core/check/class_groups.h"

#include "core/check.h"

namespace lockstep {
namespace {

bool has_axis(AxisMask mask, int axis) {
  return (mask & mask_of(static_cast<Axis>(axis))) != 0;
}

/// Number of the combination that a class lies in: its digits outside the communicator's axes.
std::size_t combination_of(const Plan& plan, AxisMask axes, const ClassCoordinates& coordinates) {
  std::size_t result = 0;
  for (int axis = 0; axis < kAxisCount; ++axis) {
    if (has_axis(plan.class_axes, axis) && !has_axis(axes, axis)) {
      result = result * static_cast<std::size_t>(plan.mesh.size(static_cast<Axis>(axis))) +
               static_cast<std::size_t>(coordinates[static_cast<std::size_t>(axis)]);
    }
  }
  return result;
}

bool is_member(const Plan& plan, const Communicator& communicator, int stage) {
  if (stage != kFreeCoordinate) {
    return keeps_stage(communicator, stage);
  }
  // A class that spans all stages is a member only if all its ranks are.
  for (int each = 0; each < plan.mesh.size(Axis::kPipeline); ++each) {
    if (!keeps_stage(communicator, each)) {
      return false;
    }
  }
  return true;
}

int member_count(const Plan& plan, const Communicator& communicator) {
  const AxisMask pipeline = mask_of(Axis::kPipeline);
  if ((communicator.axes & pipeline) == 0) {
    return plan.mesh.count(communicator.axes);
  }
  int stages = 0;
  for (int stage = 0; stage < plan.mesh.size(Axis::kPipeline); ++stage) {
    stages += keeps_stage(communicator, stage) ? 1 : 0;
  }
  return stages * plan.mesh.count(static_cast<AxisMask>(communicator.axes & ~pipeline));
}

}  // namespace

std::vector<ClassCoordinates> coordinates_of_classes(const Plan& plan) {
  std::vector<ClassCoordinates> result(static_cast<std::size_t>(plan.class_count()));
  for (std::size_t index = 0; index < result.size(); ++index) {
    auto rest = static_cast<int>(index);
    for (int axis = kAxisCount - 1; axis >= 0; --axis) {
      int& coordinate = result[index][static_cast<std::size_t>(axis)];
      coordinate = kFreeCoordinate;
      const int size = plan.mesh.size(static_cast<Axis>(axis));
      if (has_axis(plan.class_axes, axis)) {
        coordinate = rest % size;
        rest /= size;
      } else if (size == 1) {
        coordinate = 0;
      }
    }
    ClassCoordinates& all = result[index];
    const int outer = all[static_cast<std::size_t>(Axis::kDataReplica)];
    const int inner = all[static_cast<std::size_t>(Axis::kData)];
    all[static_cast<std::size_t>(Axis::kAllData)] =
        outer == kFreeCoordinate || inner == kFreeCoordinate
            ? kFreeCoordinate
            : outer * plan.mesh.size(Axis::kData) + inner;
  }
  return result;
}

CoordinateRange coordinate_range(const Plan& plan, const ClassCoordinates& coordinates, Axis axis) {
  if (axis == Axis::kNone) {
    return {};
  }
  if (axis == Axis::kAllData) {
    const CoordinateRange outer = coordinate_range(plan, coordinates, Axis::kDataReplica);
    const CoordinateRange inner = coordinate_range(plan, coordinates, Axis::kData);
    const int size = plan.mesh.size(Axis::kData);
    return {outer.first * size + inner.first, outer.last * size + inner.last};
  }
  const int coordinate = coordinates[static_cast<std::size_t>(axis)];
  return coordinate == kFreeCoordinate ? CoordinateRange{0, plan.mesh.size(axis) - 1}
                                       : CoordinateRange{coordinate, coordinate};
}

int class_at_stage(const Plan& plan, int class_index, int stage) {
  const int stages = plan.mesh.size(Axis::kPipeline);
  if (stage < 0 || stage >= stages) {
    return -1;
  }
  if (stages == 1) {
    return class_index;
  }
  const AxisMask pipeline = mask_of(Axis::kPipeline);
  if ((plan.class_axes & pipeline) == 0) {
    return -1;
  }
  // The pipeline is the outermost axis, so its digit weighs as much as all others together.
  const int inner = plan.mesh.count(static_cast<AxisMask>(plan.class_axes & ~pipeline));
  return stage * inner + class_index % inner;
}

bool keeps_stage(const Communicator& communicator, int stage) {
  return communicator.pipeline_coordinates == 0 ||
         (stage < 64 &&
          ((communicator.pipeline_coordinates >> static_cast<unsigned>(stage)) & 1U) != 0);
}

std::vector<ClassGroups> class_groups(const Plan& plan,
                                      const std::vector<ClassCoordinates>& coordinates) {
  std::vector<ClassGroups> result;
  for (const Communicator& communicator : plan.communicators) {
    ClassGroups groups;
    groups.members = member_count(plan, communicator);
    groups.group_of_class.assign(coordinates.size(), ClassGroups::kNotMember);
    const auto outside = static_cast<AxisMask>(plan.class_axes & ~communicator.axes);
    groups.groups.resize(static_cast<std::size_t>(plan.mesh.count(outside)));
    for (std::size_t index = 0; index < coordinates.size(); ++index) {
      if (is_member(plan, communicator, coordinates[index][0])) {
        const std::size_t group = combination_of(plan, communicator.axes, coordinates[index]);
        groups.group_of_class[index] = static_cast<int>(group);
        groups.groups[group].push_back(static_cast<int>(index));
      }
    }
    result.push_back(std::move(groups));
  }
  return result;
}

int rank_in_group(const Plan& plan, const Communicator& communicator, int rank, int class_index) {
  for (const int member : members(plan, communicator, rank)) {
    if (plan.class_of_rank(member) == class_index) {
      return member;
    }
  }
  LOCKSTEP_CHECK(false, "group has no member of that class");
}

}  // namespace lockstep
