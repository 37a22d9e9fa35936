// Headless: the program without a window: input is fed by whoever drives it, a frame is drawn, a
// picture is taken. The clock is the frame number, so that pictures are the same every time.
#pragma once

#include <memory>
#include <string>

#include <imgui.h>

#include "visualizer/app/app.h"
#include "visualizer/shot/image.h"

namespace lockstep::shot {

class Headless {
 public:
  Headless(int width, int height, app::Settings settings);
  Headless(const Headless&) = delete;
  Headless& operator=(const Headless&) = delete;
  ~Headless();

  app::App& app() { return *app_; }
  ImGuiIO& io() { return ImGui::GetIO(); }
  void resize(int width, int height);
  void frame();
  void frames(int count);
  /// Frames until the worker is idle and its result is drawn.
  void settle();
  /// Of the last frame.
  Image picture() const;
  /// Of the last frame: four vertices each, letters too. What a graphics card has to draw.
  int quads() const;

 private:
  struct ContextDeleter {
    void operator()(ImGuiContext* context) const { ImGui::DestroyContext(context); }
  };

  std::unique_ptr<ImGuiContext, ContextDeleter> context_;
  std::string clipboard_;
  std::unique_ptr<app::App> app_;  ///< in the context: goes first
};

}  // namespace lockstep::shot
