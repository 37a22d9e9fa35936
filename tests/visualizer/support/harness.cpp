#include "tests/visualizer/support/harness.h"

#include <utility>

#include "core/io/scenario_io.h"
#include "tests/support/catch.h"
#include "visualizer/app/presets.h"

namespace lockstep::test {

Harness::Harness(int width, int height, app::Settings settings)
    : headless_(width, height, std::move(settings)) {
  frames(2);
}

void Harness::open(const std::string& path) {
  session().open(path);
  settle();
  frames(2);
}

void Harness::show(const std::string& view) {
  Scenario scenario = app::preset_scenario(*app::find_preset("laptop"));
  if (view == "shards") {
    set_key(scenario, "strategy.data.kind", "fsdp");
  } else if (view == "pipeline") {
    set_key(scenario, "strategy.data.degree", "1");
    set_key(scenario, "strategy.pipeline.degree", "2");
    set_key(scenario, "training.accumulate", "4");
  }
  session().start(scenario);
  settle();
  REQUIRE(session().problems().one_line() == "");
  REQUIRE(app().shell().show_view(view));
  if (view == "compare") {
    session().pin();
    session().edit([](Scenario& it) { it.training.micro_batch = 4; });
  }
  settle();
}

bool Harness::shows(std::string_view tag) {
  return app().tags().all().find(tag) != app().tags().all().end();
}

ui::Tag Harness::tag(std::string_view tag) {
  INFO("tag " << tag);
  const auto it = app().tags().all().find(tag);
  REQUIRE(it != app().tags().all().end());
  return it->second;
}

std::string Harness::value(std::string_view name) {
  return tag(name).value;
}

void Harness::move(const ImVec2& to) {
  ui::feed_mouse(headless_.io(), to);
  frames(2);
}

void Harness::click_at(const ImVec2& at, int button) {
  move(at);
  ui::feed_button(headless_.io(), button, true);
  frames(1);
  ui::feed_button(headless_.io(), button, false);
  frames(2);
}

void Harness::click(std::string_view name) {
  click_at(tag(name).centre());
}

void Harness::drag(const ImVec2& from, const ImVec2& to) {
  move(from);
  ui::feed_button(headless_.io(), 0, true);
  frames(1);
  ui::feed_mouse(headless_.io(), ImVec2((from.x + to.x) / 2, (from.y + to.y) / 2));
  frames(1);
  ui::feed_mouse(headless_.io(), to);
  frames(1);
  ui::feed_button(headless_.io(), 0, false);
  frames(2);
}

void Harness::wheel(const ImVec2& at, float lines) {
  move(at);
  ui::feed_wheel(headless_.io(), lines);
  frames(2);
}

void Harness::press(ui::Key key, int modifiers) {
  ui::feed_modifiers(headless_.io(), modifiers);
  ui::feed_key(headless_.io(), key, true);
  frames(1);
  ui::feed_key(headless_.io(), key, false);
  ui::feed_modifiers(headless_.io(), ui::kPlain);
  frames(2);
}

void Harness::type(std::string_view text) {
  ui::feed_text(headless_.io(), text);
  frames(2);
}

void Harness::command(std::string_view name) {
  press(ui::Key::kP, ui::kControl | ui::kShift);
  type(name);
  press(ui::Key::kEnter);
  frames(2);
}

}  // namespace lockstep::test
