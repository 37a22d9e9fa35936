// Efficiency: every constant of the cost model that is not a fact about a device or a link. Each
// has a physical meaning and stands here once; at most fifteen for everything.
#pragma once

namespace lockstep::sim {}  // namespace lockstep::sim
