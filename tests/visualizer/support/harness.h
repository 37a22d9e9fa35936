// Harness: the whole program without a window, driven by the names of its widgets.
//
//     Harness window;
//     window.open("fsdp");
//     window.click("top.language");
//     CHECK(window.value("metric.mfu") == ...);
#pragma once

#include <string>
#include <string_view>

#include "visualizer/shot/headless.h"
#include "visualizer/ui/compat.h"

namespace lockstep::test {

class Harness {
 public:
  explicit Harness(int width = 1280, int height = 800, app::Settings settings = {});

  app::App& app() { return headless_.app(); }
  app::Session& session() { return headless_.app().session(); }
  shot::Image picture() const { return headless_.picture(); }
  ImGuiIO& io() { return headless_.io(); }
  int quads() const { return headless_.quads(); }
  void frames(int count) { headless_.frames(count); }
  void settle() { headless_.settle(); }
  void resize(int width, int height) { headless_.resize(width, height); }
  /// Opens and waits.
  void open(const std::string& path);
  /// A view and a small scenario that it has something to show of.
  void show(const std::string& view);

  bool shows(std::string_view tag);
  /// What the widget shows; fails the test when there is none.
  std::string value(std::string_view tag);
  /// Its place on the screen.
  ui::Tag tag(std::string_view tag);

  void move(const ImVec2& to);
  void click(std::string_view tag);
  void click_at(const ImVec2& at, int button = 0);
  void drag(const ImVec2& from, const ImVec2& to);
  void wheel(const ImVec2& at, float lines);
  void press(ui::Key key, int modifiers = ui::kPlain);
  void type(std::string_view text);
  /// By the palette: Ctrl+Shift+P, its name, Enter.
  void command(std::string_view name);

 private:
  shot::Headless headless_;
};

}  // namespace lockstep::test
