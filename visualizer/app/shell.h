// Shell: the window's frame: top bar, settings on the left, the view in the middle, details below,
// figures on the right, splitters between, dialogs in front.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "visualizer/app/dialogs.h"
#include "visualizer/app/file_desk.h"
#include "visualizer/app/imported_panel.h"
#include "visualizer/app/scenario_panel.h"
#include "visualizer/app/session.h"
#include "visualizer/app/settings.h"
#include "visualizer/ui/draw.h"
#include "visualizer/views/view.h"

namespace lockstep::app {

class Shell {
 public:
  Shell(Session& session, Settings& settings);

  /// Everything between ImGui's NewFrame and Render.
  void draw();

  /// Before NewFrame: what was drawn last is whole then.
  void before_frame();

  /// Opens a path; asks first what shall become of edits.
  void open(const std::string& path);
  /// Ends the program; asks first.
  void quit();
  /// "ddp.json * - Lockstep": the star is for edits that no file has.
  std::string title() const;

  /// False when there is no view of this id.
  bool show_view(std::string_view id);
  const views::View& view() const { return *views_[view_]; }
  const std::vector<std::unique_ptr<views::View>>& all_views() const { return views_; }
  Dialogs& dialogs() { return dialogs_; }
  bool wants_to_quit() const { return quit_; }

 private:
  // The windows that F6 goes through.
  static constexpr const char* kTop = "##top";
  static constexpr const char* kLeft = "##left";
  static constexpr const char* kCentre = "##centre";
  static constexpr const char* kBottom = "##bottom";
  static constexpr const char* kRight = "##right";
  static constexpr const char* kStatus = "##status";
  static constexpr const char* kHome = "##home";
  static constexpr std::array<const char*, 6> kPanels{
      kTop, kLeft, kCentre, kBottom, kRight, kStatus};

  struct Places {
    ui::Rect top;
    ui::Rect left;
    ui::Rect centre;
    ui::Rect bottom;
    ui::Rect right;
    ui::Rect status;  ///< empty when there is nothing to say
  };

  Places places() const;
  std::vector<Command> commands();
  void add_session_commands(std::vector<Command>& commands);
  void add_look_commands(std::vector<Command>& commands);
  void add_panel_commands(std::vector<Command>& commands);
  void add_field_commands(std::vector<Command>& commands) const;
  void run_keys(const std::vector<Command>& commands);
  void cycle_panels();
  void escape();
  bool begin_panel(const char* name, const ui::Rect& place, int flags = 0) const;

  void top_bar(const ui::Rect& place);
  /// Of the buttons at the right end of the top bar, and how wide they are together.
  struct LookTexts {
    std::string language;
    std::string theme;
    std::string scale;
    std::string palette;
    std::string files;
    float width = 0;
  };
  LookTexts look_texts() const;
  void view_tabs();
  void look_buttons();
  void working_screen(const Places& at);
  void centre(const ui::Rect& place);
  bool begins_to_walk();
  void bottom(const ui::Rect& place);
  void splitters(const Places& at);
  void splitter(const char* id, const ui::Rect& place, bool vertical, float& share, float sign);
  void show_text();
  void show_view_at(std::size_t index);
  ExportOffer export_offer();
  void show_export();
  void carry_out(const ExportDialog::Wish& wish);
  void status_line(const ui::Rect& place);
  void add_file_commands(std::vector<Command>& commands);
  /// Something is open, and shown.
  bool working() const { return !session_.at_home(); }
  /// Whether the current view has something to show.
  bool can_draw_view() const;

  Session& session_;
  Settings& settings_;
  std::vector<std::unique_ptr<views::View>> views_;
  std::size_t view_ = 0;
  ScenarioPanel scenario_panel_;
  ImportedPanel imported_panel_;
  Dialogs dialogs_;
  FileDesk desk_;
  void show_open(bool baseline);

  bool opens_baseline_ = false;  ///< what the dialog's file is for
  bool quit_ = false;
  std::optional<bool> was_working_;
  bool walks_ = false;  ///< arrows move between the view's controls instead of moving the view
};

}  // namespace lockstep::app
