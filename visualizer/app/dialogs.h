// Dialogs: one at a time, in front of everything, closed by Esc.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "visualizer/app/commands.h"
#include "visualizer/app/export_dialog.h"
#include "visualizer/app/path_prompt.h"
#include "visualizer/views/view.h"

namespace lockstep::app {

enum class Dialog : std::uint8_t {
  kNone,
  kError,
  kKeys,
  kGlossary,
  kPalette,
  kOpen,
  kText,
  kExport,
  kSaveAs,
  kUnsaved,
};

enum class Unsaved : std::uint8_t { kSave, kDiscard, kCancel };

class Dialogs {
 public:
  Dialog current() const { return current_; }
  void show(Dialog dialog);
  void show_error(const std::string& message);
  void show_text(std::string title, std::string text);
  void show_export(ExportOffer offer);
  void show_save_as(std::string path);
  /// What shall happen to the edits of `name`.
  void show_unsaved(std::string name);
  void close() { current_ = Dialog::kNone; }

  /// `view_keys` are the current view's.
  void draw(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);

  std::function<void(const std::string&)> on_open;
  std::function<void(const ExportDialog::Wish&)> on_export;
  std::function<void(const std::string&)> on_save_as;
  std::function<void(Unsaved)> on_unsaved;

 private:
  void contents(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);
  void error();
  void keys(const std::vector<Command>& commands, const std::vector<views::KeyHelp>& view_keys);
  void glossary();
  void palette(const std::vector<Command>& commands);
  void open_path();
  void folder();
  void text();
  void export_what();
  void save_as();
  void unsaved();
  void title(const std::string& title);

  Dialog current_ = Dialog::kNone;
  bool appearing_ = false;
  std::string message_;  ///< error's
  std::string title_;    ///< text's
  std::string text_;
  std::string input_;  ///< palette's and open's
  std::size_t chosen_ = 0;
  ExportDialog export_;
  PathPrompt save_;
};

}  // namespace lockstep::app
