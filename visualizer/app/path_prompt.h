// PathPrompt: a line in which a path is typed, for writing. What is there already is replaced only
// when that was asked and confirmed.
//
//     prompt.start("/home/me/step.csv");
//     if (prompt.draw("save", ui::tr(S::kSave))) write(prompt.path());
#pragma once

#include <string>

namespace lockstep::app {

class PathPrompt {
 public:
  void start(std::string path);
  const std::string& path() const { return path_; }
  /// Into the current window, tagged TAG.path, TAG.write, TAG.exists. True when it shall be
  /// written.
  bool draw(const std::string& tag, const char* action);

 private:
  std::string path_;
  std::string asked_;  ///< about this path it was asked whether to replace it
  int started_ = 0;    ///< a text box that is edited does not see what is set from outside
  bool appearing_ = false;
};

/// A file, or a folder that is not empty.
bool is_taken(const std::string& path);

}  // namespace lockstep::app
