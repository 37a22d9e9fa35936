// LanesPane: paints lanes and lets people move in them: wheel and keys zoom and pan, a drag selects
// a span of time, a click selects a box, the minimap shows where one is.
//
// It knows neither plans nor sessions: what is selected goes in and comes out through LanesChoice,
// what lies over the boxes (marks, arrows, arrivals) goes in through LanesOverlay.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <imgui.h>

#include "visualizer/models/lane_marks.h"
#include "visualizer/models/lanes.h"
#include "visualizer/ui/draw.h"

namespace lockstep::views {

struct LanesBoxRef {
  std::size_t row = 0;
  view::LaneBox box;
};

struct LanesChoice {
  std::optional<LanesBoxRef> selected;
  std::optional<view::TimeWindow> area;
  std::optional<Nanoseconds> cursor;
};

/// From something that was over to what could start then.
struct LanesArrow {
  std::size_t from_row = 0;
  Nanoseconds from = 0;
  std::size_t to_row = 0;
  Nanoseconds to = 0;
  bool strong = false;  ///< the one that counted
};

/// A rank that came to a collective.
struct LanesArrival {
  std::size_t row = 0;
  Nanoseconds arrived = 0;
  Nanoseconds started = 0;
  bool last = false;
  std::string text;  ///< how long it waited; written where there is room
};

/// What is painted over the boxes; pointers may be null.
struct LanesOverlay {
  const view::LaneMarks* path = nullptr;   ///< outlined; without `found` all others are dimmed
  const view::LaneMarks* found = nullptr;  ///< framed, all others are dimmed
  const std::vector<LanesArrow>* chain = nullptr;  ///< from piece to piece of the path, by time
  std::vector<LanesArrow> arrows;
  std::vector<LanesArrival> arrivals;
};

class LanesPane {
 public:
  /// Shows the whole again when the lanes are others than before.
  void show(const view::Lanes* lanes);
  /// After rows were added to the lanes.
  void count_rows();
  /// Fills the content region.
  void draw(LanesChoice& choice, bool has_keys, const LanesOverlay& overlay = {});
  /// Moves in time and, when it is drawn, to the row, as far as needed.
  void reveal(const LanesBoxRef& box);

  const view::TimeWindow& window() const { return window_; }
  void set_window(view::TimeWindow window);
  void fit();
  /// How far one can go, instead of the lanes' own whole: for two that move together.
  void set_limits(view::TimeWindow limits) { limits_ = limits; }
  /// Of the column left of the rows; two panes with one time axis have the wider one's.
  float label_width() const;
  void set_least_label_width(float width) { least_label_width_ = width; }
  /// In front of its tags, where there are two.
  void set_name(std::string name) { name_ = std::move(name); }
  /// Characters that go to the previous and the next box of a row.
  void set_walk_keys(char32_t back, char32_t forward) { walk_keys_ = {back, forward}; }

 private:
  struct Layout {
    ui::Rect head;    ///< time axis
    ui::Rect labels;  ///< left of the rows
    ui::Rect body;
    ui::Rect map;
    float row_height = 0;
    float group_gap = 0;
  };

  Layout layout(const ImVec2& origin, const ImVec2& size) const;
  float rows_height(float row_height, float gap) const;
  ui::Rect row_rect(const Layout& at, std::size_t row) const;
  float x_of(const ui::Rect& body, Nanoseconds time) const;
  Nanoseconds time_at(const ui::Rect& body, float x) const;

  void handle_mouse(const Layout& at, LanesChoice& choice);
  void drag(const Layout& at, LanesChoice& choice);
  void click(const Layout& at, LanesChoice& choice);
  void handle_keys(const Layout& at, LanesChoice& choice);
  void handle_map(const Layout& at);
  void zoom(double factor, Nanoseconds around);
  void pan(Nanoseconds distance);
  void walk(LanesChoice& choice, int direction);
  std::optional<LanesBoxRef> box_under(const Layout& at, const ImVec2& point) const;

  struct Emphasis {
    bool path = false;
    bool found = false;
    bool dimmed = false;
  };

  void paint_labels(const Layout& at) const;
  void paint_rows(const Layout& at, const LanesChoice& choice, const LanesOverlay& overlay) const;
  void paint_row(const Layout& at, std::size_t row, const LanesOverlay& overlay) const;
  void paint_box(const Layout& at,
                 std::size_t row,
                 const view::LaneBox& box,
                 ui::Rect place,
                 const Emphasis& emphasis) const;
  static void paint_emphasis(const Layout& at,
                             const ui::Rect& place,
                             const Emphasis& emphasis,
                             bool sides);
  void paint_choice(const Layout& at, const LanesChoice& choice) const;
  void paint_chain(const Layout& at, const std::vector<LanesArrow>& chain) const;
  void paint_arrow(const Layout& at, const LanesArrow& arrow) const;
  void paint_arrivals(const Layout& at, const std::vector<LanesArrival>& arrivals) const;
  void paint_map(const Layout& at) const;
  void paint_tooltip(const Layout& at) const;
  /// So narrow that a frame stays below kMostBoxes, marked ones below kMostMarked.
  Nanoseconds narrowest(const Layout& at, bool marked = false) const;

  view::TimeWindow limits() const;
  void scroll_to(const Layout& at, std::size_t row);

  static constexpr float kDragPixels = 4;  ///< less is a click

  std::string name_ = "lanes";
  float least_label_width_ = 0;
  std::optional<view::TimeWindow> limits_;
  const view::Lanes* lanes_ = nullptr;
  std::vector<std::size_t> group_of_row_;  ///< how many groups begin above or at the row
  view::TimeWindow window_;
  float scroll_ = 0;
  std::optional<Nanoseconds> drag_from_;
  bool map_held_ = false;
  std::pair<char32_t, char32_t> walk_keys_{'[', ']'};
  std::optional<std::size_t> revealed_row_;
};

}  // namespace lockstep::views
