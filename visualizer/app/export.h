// Export: what can be written of what is shown, and the errand that writes it beside the window.
// Forms of traces are those of `lockstep trace --format`, JSON and SVG of views those of `lockstep
// show`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>

#include "visualizer/app/worker.h"
#include "visualizer/ui/strings.h"

namespace lockstep::app {

enum class ExportForm : std::uint8_t {
  kPng,
  kSvg,
  kViewJson,
  kCsv,
  kJson,
  kChrome,
  kKineto,
  kMemoryViz,
  kActionsCsv,
};

struct ExportKind {
  ExportForm form = ExportForm::kPng;
  const char* id = "";  ///< of tags: "export.png"
  ui::S title = ui::S::kExportPng;
  const char* ending = "";  ///< of the file, behind the name of what is open
  bool of_view = false;     ///< the view's id is a part of the file's name
  bool needs_plan = true;   ///< not there for a trace of another tool
};
/// By ExportForm.
std::span<const ExportKind> export_kinds();

/// "DIR/fsdp-timeline.png": beside the file that is open, or in the current folder.
std::string export_path(const ExportKind& kind,
                        const std::string& folder,
                        const std::string& name,
                        const std::string& view);

/// Writes on the worker's thread. Whoever made it keeps it until it is done; letting go of it ends
/// it, and nothing is left of what was being written.
class ExportErrand : public Errand {
 public:
  using Write = std::function<void(const StopCheck&)>;
  ExportErrand(std::string path, Write write) : path_(std::move(path)), write_(std::move(write)) {}

  const std::string& path() const { return path_; }
  bool done() const { return done_; }
  /// One line, when it is done; empty when all went well.
  std::string error() const;

  bool step(const StopCheck& stop_check) override;

 private:
  std::string path_;
  Write write_;
  mutable std::mutex mutex_;
  std::string error_;
  std::atomic<bool> done_ = false;
};

/// Of a form that shows the document's trace: kCsv to kMemoryViz.
ExportErrand::Write trace_writer(ExportForm form, DocumentPtr document, std::string path);
ExportErrand::Write text_writer(std::string text, std::string path);

}  // namespace lockstep::app
