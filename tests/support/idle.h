// Operations that change nothing in a correct plan, and are there because what it models has them.
//
// The value check lists every collective, receive, copy, scale or add that never changed what it
// wrote. Three kinds are asked for: DDP's broadcast, with its unpack, of buffers that are equal
// already (statistics in iteration 1, the count of batches always); rank 0's unpack of what it has
// sent itself at construction; the norm of a tied weight's second copy, which does not count.
#pragma once

#include "core/check/value_check.h"
#include "core/plan.h"

namespace lockstep::test {

bool may_be_idle(const Plan& plan, const IdleOperation& idle);

}  // namespace lockstep::test
