// View: one way to look at a document. A view paints a model and keeps only where one looks (zoom,
// scroll); what is selected belongs to the session, so that all views point at the same.
//
// A new view is a class here, a line in registry.cpp and its strings in ui/strings/. It is made
// once and lives as long as the window; models are cached by the document's pointer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/json_writer.h"
#include "visualizer/app/session.h"
#include "visualizer/models/lanes.h"
#include "visualizer/ui/strings.h"

namespace lockstep::views {

/// What a view may read, and the session that it may change (selection, scenario).
struct ViewContext {
  app::Session& session;
  app::DocumentPtr document;  ///< never null

  /// The time that all views point at, since the step's begin.
  std::optional<Nanoseconds> cursor_in_step() const {
    return session.cursor ? std::optional(*session.cursor - document->shown_step().begin)
                          : std::nullopt;
  }
};

/// A line of the keyboard map.
struct KeyHelp {
  std::string keys;
  ui::S meaning;
};

class View {
 public:
  virtual ~View() = default;

  /// For --view, settings and tags: "timeline".
  virtual const char* id() const = 0;
  virtual ui::S title() const = 0;
  /// One sentence: what am I looking at?
  virtual ui::S about() const = 0;
  /// False for what can also show a trace without a plan (Document::imported).
  virtual bool needs_plan() const { return true; }
  /// False for what shows more than a step, or none.
  virtual bool is_of_one_step() const { return true; }
  /// Into the current window, all of its content region. Keys are the view's when `has_keys`.
  virtual void draw(ViewContext& context, bool has_keys) = 0;
  /// The same as text, for the T key.
  virtual std::string text(const ViewContext& context) = 0;
  /// What is known about the selection; empty when nothing is selected.
  virtual view::DetailLines details(const ViewContext&) { return {}; }
  /// Below the centre: details() as a table, unless the view has something better.
  virtual void draw_details(ViewContext& context);
  /// Esc while no text is edited: true when it closed something of the view.
  virtual bool escape() { return false; }
  virtual std::vector<KeyHelp> keys() const { return {}; }
  /// Another one is shown from now on.
  virtual void hide() {}

  // Files of the view.
  /// Fields into an open object, as `lockstep show VIEW --json` has them; false when it has none.
  virtual bool json(JsonWriter&, const ViewContext&) { return false; }
  virtual bool has_svg() const { return false; }
  /// An SVG document, or "".
  virtual std::string svg(const ViewContext&) { return ""; }
  /// The schedule as PyTorch's action CSV, or "".
  virtual std::string actions_csv(const ViewContext&) { return ""; }
};

/// As `lockstep show VIEW --json`; "" when the view has no figures.
std::string json_text(View& view, const ViewContext& context);

/// A table of names and values, each with its tag.
void draw_detail_lines(const view::DetailLines& lines);

/// All views, in the order of the keys 1 to 9.
std::vector<std::unique_ptr<View>> make_views();

}  // namespace lockstep::views
