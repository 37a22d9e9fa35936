// MetricCards: the figures on the right, each with its difference to the pinned baseline.
#pragma once

#include "visualizer/app/session.h"

namespace lockstep::app {

/// Into the current window.
void draw_metric_cards(Session& session);

}  // namespace lockstep::app
