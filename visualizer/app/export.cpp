#include "visualizer/app/export.h"

#include <array>
#include <exception>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/files.h"
#include "core/io/trace_export.h"

namespace lockstep::app {
namespace {

using ui::S;

constexpr std::array<ExportKind, 9> kKinds{
    {{ExportForm::kPng, "png", S::kExportPng, ".png", true, false},
     {ExportForm::kSvg, "svg", S::kExportSvg, ".svg", true, true},
     {ExportForm::kViewJson, "view_json", S::kExportViewJson, ".json", true, false},
     {ExportForm::kCsv, "csv", S::kExportCsv, ".csv", false, true},
     {ExportForm::kJson, "json", S::kExportJson, ".spans.json", false, true},
     {ExportForm::kChrome, "chrome", S::kExportChrome, ".chrome.json", false, true},
     {ExportForm::kKineto, "kineto", S::kExportKineto, "-profiles", false, true},
     {ExportForm::kMemoryViz, "memory_viz", S::kExportMemory, ".pickle", false, true},
     {ExportForm::kActionsCsv, "actions", S::kExportActions, "-schedule.csv", false, true}}};

TraceForm trace_form(ExportForm form) {
  switch (form) {
    case ExportForm::kCsv:
      return TraceForm::kCsv;
    case ExportForm::kChrome:
      return TraceForm::kChrome;
    case ExportForm::kKineto:
      return TraceForm::kKineto;
    case ExportForm::kMemoryViz:
      return TraceForm::kMemoryViz;
    default:
      return TraceForm::kJson;
  }
}

/// A name may come from a file of somebody else.
std::string file_stem(const std::string& name) {
  std::string stem = std::filesystem::path(name).stem().string();
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    c = plain ? c : '_';
  }
  return stem.empty() ? "step" : stem;
}

}  // namespace

std::span<const ExportKind> export_kinds() {
  return kKinds;
}

std::string export_path(const ExportKind& kind,
                        const std::string& folder,
                        const std::string& name,
                        const std::string& view) {
  const std::string file = kind.of_view ? fmt::format("{}-{}{}", file_stem(name), view, kind.ending)
                                        : file_stem(name) + kind.ending;
  return (std::filesystem::path(folder) / file).string();
}

std::string ExportErrand::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

bool ExportErrand::step(const StopCheck& stop_check) {
  std::string error;
  try {
    check_stop(stop_check);
    write_(stop_check);
  } catch (const InterruptedError&) {
    throw;
  } catch (const std::exception& failure) {
    error = failure.what();
  }
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  done_ = true;
  return false;
}

ExportErrand::Write trace_writer(ExportForm form, DocumentPtr document, std::string path) {
  return [=](const StopCheck& stop_check) {
    export_trace({trace_form(form), path, {}, stop_check},
                 document->scenario,
                 document->plan,
                 document->trace);
  };
}

ExportErrand::Write text_writer(std::string text, std::string path) {
  return [text = std::move(text), path = std::move(path)](const StopCheck&) {
    write_whole(path, {text}, "export");
  };
}

}  // namespace lockstep::app
