// Dialogs: one at a time, in front of everything, closed by Esc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "visualizer/app/commands.h"
#include "visualizer/views/view.h"

namespace lockstep::app {

enum class Dialog : std::uint8_t { kNone, kError, kKeys, kGlossary, kPalette, kOpen, kText };

class Dialogs {
 public:
  Dialog current() const { return current_; }
  void show(Dialog dialog);
  void show_error(const std::string& message);
  void show_text(std::string title, std::string text);
  void close() { current_ = Dialog::kNone; }

  /// `view_keys` are the current view's.
  void draw(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);

  std::function<void(const std::string&)> on_open;

 private:
  void contents(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);
  void error();
  void keys(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);
  void glossary();
  void palette(const std::vector<Command>& commands);
  void open_path();
  void folder();
  void text();
  void title(const std::string& title);

  Dialog current_ = Dialog::kNone;
  bool appearing_ = false;
  std::string message_;  ///< error's
  std::string title_;    ///< text's
  std::string text_;
  std::string input_;  ///< palette's and open's
  std::size_t chosen_ = 0;
};

}  // namespace lockstep::app
