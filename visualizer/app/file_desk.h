// FileDesk: what the window writes, the question about edits that would be lost, and what the line
// at the window's bottom says about it and about the work that goes on.
//
//     desk.guard([&] { session.open(path); });       // asks first where there are edits
//     desk.write(path, trace_writer(form, document, path));
//     desk.poll();                                    // once a frame
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "visualizer/app/dialogs.h"
#include "visualizer/app/export.h"
#include "visualizer/app/session.h"

namespace lockstep::app {

class FileDesk {
 public:
  FileDesk(Session& session, Dialogs& dialogs);

  /// The scenario to its file, or to one that is asked for.
  void save();
  void save_as();
  /// Does it at once, or when it was said what shall become of the edits.
  void guard(std::function<void()> then);

  /// Beside the window; replaces what is being written.
  void write(const std::string& path, ExportErrand::Write write);
  /// Of the window, when the dialog is gone from it.
  void write_picture(const std::string& path);
  /// Before NewFrame: takes the picture that is wanted.
  void before_frame();

  void poll();
  bool has_status() const { return !status_.empty(); }
  const std::string& status() const { return status_; }
  /// The line is about work that can be ended.
  bool can_cancel() const { return can_cancel_; }
  void cancel();
  /// What Esc is for: work, then what was said. False when there was neither.
  bool escape();
  /// The folder of what is open, else the current one.
  std::string folder() const;

 private:
  /// To the file that is open; asks for a path where there is none yet.
  void save_or_ask();
  void ask_path();
  void save_to(const std::string& path);
  void answered(Unsaved answer);
  void say(std::string text);
  void finish_export();
  void make_status();

  Session& session_;
  Dialogs& dialogs_;
  std::function<void()> then_;  ///< waits for an answer, or for a path to save to
  std::shared_ptr<ExportErrand> errand_;
  double since_ = 0;  ///< when it was begun
  std::string picture_;
  int picture_frames_ = 0;  ///< until it is taken
  std::string said_;
  double said_at_ = 0;
  std::string status_;
  bool can_cancel_ = false;
};

}  // namespace lockstep::app
