#include "visualizer/ui/state.h"

#include <imgui.h>

#include "core/check.h"

namespace lockstep::ui {

State& state() {
  auto* const state = static_cast<State*>(ImGui::GetIO().UserData);
  LOCKSTEP_CHECK(state != nullptr, "no ui::State is attached to the context");
  return *state;
}

void attach(State& state) {
  ImGui::GetIO().UserData = &state;
}

}  // namespace lockstep::ui
