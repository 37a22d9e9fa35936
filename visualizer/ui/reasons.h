// reason_text: why settings exclude each other, in the window's language. The legality table of
// core says it in English, with the numbers of the scenario behind; ui/strings/reasons.def says the
// same by the rules' ids in Chinese.
#pragma once

#include <string>
#include <string_view>

#include "visualizer/ui/strings.h"

namespace lockstep::ui {

/// A text in which the legality table's reasons may stand (a Problem's message, an error of several
/// problems), with each of them in the window's language. Everything else stays as it is.
std::string reason_text(std::string_view message);
std::string reason_text(std::string_view message, Language language);

}  // namespace lockstep::ui
