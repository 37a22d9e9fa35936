// PlanFingerprint: 64 bits that tell whether two plans are the same for whoever interprets them.
//
// It covers every field of core/plan.h that rule R4 lets an interpreter read, value by value (never
// bytes in memory), so it is the same on every machine and in every build. A trace carries it, so
// that spans are never read against other operations; ranks compare it before a run. It is no
// cryptographic hash.
#pragma once

#include <cstdint>

#include "core/plan.h"

namespace lockstep {

std::uint64_t plan_fingerprint(const Plan& plan);

}  // namespace lockstep
