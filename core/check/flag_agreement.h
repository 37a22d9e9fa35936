// Flag agreement: over which ranks a flag is known to have one value.
//
// An operation guarded by a flag is skipped where the flag is set. If others take part in the
// operation, all must skip it or none, so the flag must have been reduced by maximum over at least
// the group of the operation. Reductions over several axes add up: after one over tp and one over
// dp all ranks of tp x dp agree.
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace lockstep {

struct FlagAgreement {
  AxisMask axes = 0;
  std::uint64_t stages = 0;  ///< with the pipeline axis: these coordinates; 0 = all

  bool operator==(const FlagAgreement&) const = default;
  /// The flag was reduced by maximum over the communicator.
  void reduce(const Communicator& communicator);
  /// Whether all members of a group of the communicator agree.
  bool covers(const Mesh& mesh, const Communicator& communicator) const;
};

}  // namespace lockstep
