// App: the whole program inside one ImGui context, without a window: who has one (main, tests, the
// picture maker) feeds input and shows what is drawn.
//
//     app.prepare();        // before NewFrame; true: upload the font texture again
//     ImGui::NewFrame();
//     app.frame();
//     ImGui::Render();
#pragma once

#include <string>

#include "visualizer/app/session.h"
#include "visualizer/app/settings.h"
#include "visualizer/app/shell.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {

class App {
 public:
  /// In the current context. Settings are kept in `settings_file` unless that is empty.
  explicit App(Settings settings, std::string settings_file = "");
  App(const App&) = delete;
  App& operator=(const App&) = delete;
  ~App();

  bool prepare();
  void frame();

  Session& session() { return session_; }
  Shell& shell() { return shell_; }
  Settings& settings() { return settings_; }
  ui::Tags& tags() { return state_.tags; }

 private:
  Settings settings_;
  std::string settings_file_;
  ui::State state_;
  Session session_;
  Shell shell_;
  bool prepared_ = false;
};

}  // namespace lockstep::app
