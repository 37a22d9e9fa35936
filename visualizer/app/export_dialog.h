// ExportDialog: what to write and where. Forms that what is shown does not have are greyed, with
// the reason.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "visualizer/app/export.h"
#include "visualizer/app/path_prompt.h"

namespace lockstep::app {

/// What is shown, as far as files of it go.
struct ExportOffer {
  std::string folder;
  std::string name;                  ///< of what is open
  std::string view;                  ///< its id
  std::vector<std::string> reasons;  ///< by ExportForm: why not; empty where it can be
};

class ExportDialog {
 public:
  struct Wish {
    ExportForm form = ExportForm::kPng;
    std::string path;
  };

  void start(ExportOffer offer);
  /// Into the current window.
  std::optional<Wish> draw();

 private:
  void choose(std::size_t kind);

  ExportOffer offer_;
  std::size_t chosen_ = 0;
  PathPrompt prompt_;
};

}  // namespace lockstep::app
