#include "visualizer/shot/shot.h"

#include <exception>
#include <optional>

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"
#include "visualizer/app/presets.h"
#include "visualizer/shot/headless.h"
#include "visualizer/ui/compat.h"

namespace lockstep::shot {
namespace {

/// Hover, scroll bars and sizes that depend on the last frame have settled by then.
constexpr int kFrames = 5;
/// Shows what needs no file.
constexpr std::string_view kStepsView = "steps";

void show_view(app::Shell& shell, const std::string& id) {
  if (id.empty() || shell.show_view(id)) {
    return;
  }
  std::vector<std::string_view> ids;
  for (const auto& view : shell.all_views()) {
    ids.emplace_back(view->id());
  }
  throw UsageError("flags", "--view " + not_valid_message(id, ids));
}

void open(Headless& headless, const std::string& path, const std::string& baseline) {
  app::Session& session = headless.app().session();
  session.open(path, baseline);
  session.settle();
  if (session.failure() != nullptr) {
    std::rethrow_exception(session.failure());
  }
  require_valid(resolved(session.scenario()));
  headless.settle();
}

/// Keys that the program knows by their place, not by their character.
std::optional<ui::Key> code_of(char key) {
  if (key == '\n') {
    return ui::Key::kEnter;
  }
  const bool letter = key >= 'a' && key <= 'z';
  return letter ? std::optional(static_cast<ui::Key>(key - 'a' + 'A')) : std::nullopt;
}

void type(Headless& headless, const std::string& keys) {
  for (const char key : keys) {
    const std::optional<ui::Key> code = code_of(key);
    if (code) {
      ui::feed_key(headless.io(), *code, true);
    }
    if (key != '\n') {
      ui::feed_text(headless.io(), std::string_view(&key, 1));
    }
    headless.frame();
    if (code) {
      ui::feed_key(headless.io(), *code, false);
    }
    headless.frames(2);
  }
}

}  // namespace

void take_shot(const ViewOptions& options) {
  app::Settings settings;
  settings.theme = options.theme.value_or(settings.theme);
  settings.language = options.language.value_or(settings.language);
  settings.scale = options.scale.value_or(settings.scale);
  Headless headless(options.width, options.height, settings);
  const bool compare = options.view.empty() && !options.baseline.empty();
  show_view(headless.app().shell(), compare ? "compare" : options.view);
  if (!options.file.empty()) {
    // Here, not in a dialog: whoever asked for a picture wants to know why there is none.
    open(headless, options.file, options.baseline);
    show_view(headless.app().shell(), compare ? "compare" : options.view);
  } else if (options.view == kStepsView) {
    headless.app().session().start(app::preset_scenario(app::presets().front()));
    headless.settle();
    headless.settle();  // the view has asked for its collective
    if (const std::string& error = headless.app().session().record_error(); !error.empty()) {
      throw NotSupportedError("shot", error);
    }
  }
  if (options.cursor_pixel) {
    ui::feed_mouse(headless.io(),
                   ImVec2(static_cast<float>(options.cursor_pixel->first),
                          static_cast<float>(options.cursor_pixel->second)));
  }
  if (const app::DocumentPtr& document = headless.app().session().document();
      options.cursor_time && document != nullptr) {
    const bool imported = document->imported != nullptr;
    headless.app().session().cursor =
        (imported ? 0 : document->shown_step().begin) + *options.cursor_time;
  }
  headless.frames(kFrames);
  type(headless, options.keys);
  save_png(options.shot, headless.picture());
}

}  // namespace lockstep::shot
