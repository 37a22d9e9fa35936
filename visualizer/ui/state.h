// State: what all widgets of one window share: language, theme, scale, fonts, tags. It hangs on
// ImGui's context, so that two windows (or tests) do not see each other.
#pragma once

#include "visualizer/ui/fonts.h"
#include "visualizer/ui/strings.h"
#include "visualizer/ui/tags.h"
#include "visualizer/ui/theme.h"

namespace lockstep::ui {

struct State {
  Language language = Language::kEnglish;
  const Theme* theme = nullptr;
  float scale = 1;
  Fonts fonts;
  Tags tags;
};

/// Of the current context, to which `attach` gave one.
State& state();
void attach(State& state);

inline const Theme& theme() {
  return *state().theme;
}
/// A length in unscaled pixels as it is on this screen.
inline float scaled(float length) {
  return length * state().scale;
}

}  // namespace lockstep::ui
