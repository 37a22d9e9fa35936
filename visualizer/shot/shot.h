// Shot: a picture of a view, made without a display.
#pragma once

#include "visualizer/options.h"

namespace lockstep::shot {

/// Opens what the options name, draws the view and writes the PNG. UsageError for an unknown view,
/// BadInputError for what cannot be opened or has problems.
void take_shot(const ViewOptions& options);

}  // namespace lockstep::shot
