// BudgetText: strategies side by side and the memory of each as a bar, the text twin of the budget
// view.
//
//   ddp    |PPPPPGGGGGOOOOOOOOOOAAAA              |     the bar at the right is the device
//   zero3  |PGOOAAAAA                             |
#pragma once

#include <string>

#include "visualizer/models/budget.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {

std::string budget_text(const Budget& budget, const TextOptions& options = {});

}  // namespace lockstep::view
