// Glossary: the field's words and what they mean here.
#pragma once

#include <utility>
#include <vector>

#include "visualizer/ui/strings.h"

namespace lockstep::app {

/// Term and meaning.
const std::vector<std::pair<ui::S, ui::S>>& glossary();

}  // namespace lockstep::app
