// FindBar: a line to search lanes by the names of their operations. `/` opens it, Enter, n and N go
// from one to the next and back, Esc closes it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "visualizer/models/lane_find.h"
#include "visualizer/views/lanes_pane.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class FindBar {
 public:
  /// Other lanes, or the same with other rows: what is searched for stays.
  void use(const view::Lanes* lanes);

  /// It still reads names: frames without input are needed.
  bool is_reading() const { return open_ && find_ != nullptr && !find_->is_ready(); }
  void open();
  /// False when it was not open.
  bool close();

  /// A button, or a text box and what was found. Returns where to go: `selected` is where one is,
  /// `from` the time that is searched from otherwise.
  std::optional<view::FoundItem> draw(const std::optional<LanesBoxRef>& selected,
                                      Nanoseconds from,
                                      bool has_keys);
  /// Null while nothing is searched for.
  const view::LaneMarks* marks() const;

  static std::vector<KeyHelp> keys();

 private:
  void read();
  bool draw_input();
  bool button(const char* tag, const char* label, ui::S meaning) const;
  void count(const std::optional<LanesBoxRef>& selected);
  std::optional<view::FoundItem> go(int direction, Nanoseconds from) const;

  const view::Lanes* lanes_ = nullptr;
  std::unique_ptr<view::LaneFind> find_;  ///< made when it is first needed
  std::string input_;
  bool open_ = false;
  bool wants_focus_ = false;
  std::optional<std::size_t> number_;   ///< of the selected item among those found
  std::optional<LanesBoxRef> counted_;  ///< what number_ is of
};

}  // namespace lockstep::views
