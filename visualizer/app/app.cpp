#include "visualizer/app/app.h"

#include <algorithm>
#include <utility>

#include <imgui.h>

#include "visualizer/app/presets.h"

namespace lockstep::app {

App::App(Settings settings, std::string settings_file)
    : settings_(std::move(settings)),
      settings_file_(std::move(settings_file)),
      shell_(session_, settings_) {
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.IniFilename = nullptr;
  ui::attach(state_);
  session_.on_opened = [this](const std::string& path) {
    if (find_preset(path) == nullptr) {
      settings_.add_recent(path);
    }
  };
}

App::~App() {
  save_settings(settings_file_, settings_);
  ImGui::GetIO().UserData = nullptr;
}

bool App::prepare() {
  shell_.before_frame();
  settings_.scale = std::clamp(settings_.scale, kLeastScale, kMostScale);
  const ui::Theme& theme = ui::theme_of(settings_.theme);
  const bool same_scale = prepared_ && state_.scale == settings_.scale;
  if (same_scale && state_.theme == &theme && state_.language == settings_.language) {
    return false;
  }
  prepared_ = true;
  state_.theme = &theme;
  state_.language = settings_.language;
  state_.scale = settings_.scale;
  ui::apply(theme, settings_.scale, ImGui::GetStyle());
  if (same_scale) {
    return false;
  }
  ImGuiIO& io = ImGui::GetIO();
  state_.fonts = ui::build_fonts(*io.Fonts, settings_.scale);
  io.FontDefault = state_.fonts.text;
  return true;
}

void App::frame() {
  state_.tags.begin_frame();
  shell_.draw();
}

}  // namespace lockstep::app
