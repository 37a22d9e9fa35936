// small_run: what runs for real when nothing is said.
#pragma once

#include "core/scenario.h"

namespace lockstep::cli {

/// A small GPT on bytes, in fp32, for this machine; one rank until somebody says more.
Scenario small_run();

}  // namespace lockstep::cli
