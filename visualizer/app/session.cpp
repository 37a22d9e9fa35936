#include "visualizer/app/session.h"

#include <filesystem>
#include <utility>

#include "core/io/files.h"
#include "core/io/scenario_io.h"
#include "visualizer/app/presets.h"

namespace lockstep::app {
namespace {

/// A scenario has less than 4 KiB.
constexpr std::size_t kMostUndo = 200;

}  // namespace

void Session::open(const std::string& path, const std::string& baseline) {
  opening_ = path;
  worker_.ask(
      {.number = ++asked_, .path = path, .scenario = {}, .baseline = baseline, .document = {}});
}

void Session::open_baseline(const std::string& path) {
  if (!opening_.empty()) {
    const std::string other = opening_;
    open(other, path);
    return;
  }
  if (!has_scenario()) {
    open(path);
    return;
  }
  // What is being simulated just now would be lost to the new request, so it is asked for again.
  worker_.ask({.number = ++asked_,
               .path = {},
               .scenario = scenario(),
               .baseline = path,
               .document = busy() ? ring_[at_].document : document_});
}

void Session::show_step(int step) {
  if (document_ != nullptr && !is_imported()) {
    worker_.ask({.number = ++asked_,
                 .path = {},
                 .scenario = scenario(),
                 .baseline = {},
                 .document = document_,
                 .step = step});
  }
}

void Session::pin() {
  if (!is_imported()) {
    baseline_ = document_;
  }
}

void Session::start(Scenario scenario) {
  close();
  saved_ = scenario_text(scenario);
  push({std::move(scenario), nullptr});
}

void Session::cancel() {
  if (worker_.idle()) {
    return;
  }
  worker_.cancel();
  cancelled_ = opening_.empty();
  opening_.clear();
}

void Session::again() {
  if (has_scenario() && !is_imported() && problems_.empty()) {
    ask_for_entry();
  }
}

std::string Session::name() const {
  if (!file_.empty() || (document_ != nullptr && !document_->file.empty())) {
    const std::filesystem::path path(file_.empty() ? document_->file : file_);
    return path.filename().string();
  }
  return has_scenario() ? scenario().name : "";
}

void Session::set_saved() {
  saved_ = scenario_text(scenario());
  unsaved_ = false;
}

void Session::save(const std::string& path) {
  write_whole(path, {scenario_text(scenario())}, "save");
  file_ = path;
  set_saved();
}

void Session::close() {
  clear();
  worker_.cancel();
  shown_ = asked_;  // what still runs is for what was open before
}

void Session::clear() {
  ring_.clear();
  at_ = 0;
  document_.reset();
  baseline_.reset();
  selection.reset();
  area.reset();
  cursor.reset();
  problems_ = {};
  opening_.clear();
  file_.clear();
  saved_.clear();
  unsaved_ = false;
  at_home_ = false;
  cancelled_ = false;
}

void Session::edit(const std::function<void(Scenario&)>& change) {
  Entry entry{scenario(), nullptr};
  change(entry.scenario);
  push(std::move(entry));
}

void Session::push(Entry entry) {
  opening_.clear();  // an edit is newer than what was to be opened
  if (!ring_.empty()) {
    ring_.erase(ring_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, ring_.end());
  }
  ring_.push_back(std::move(entry));
  if (ring_.size() > kMostUndo) {
    ring_.pop_front();
  }
  at_ = ring_.size() - 1;
  show_entry();
}

void Session::undo() {
  if (can_undo()) {
    --at_;
    show_entry();
  }
}

void Session::redo() {
  if (can_redo()) {
    ++at_;
    show_entry();
  }
}

void Session::show_entry() {
  const Entry& entry = ring_[at_];
  ++revision_;
  problems_ = validate(resolved(entry.scenario));
  unsaved_ = scenario_text(entry.scenario) != saved_;
  cancelled_ = false;
  selection.reset();
  area.reset();
  if (entry.document != nullptr) {
    document_ = entry.document;
    worker_.cancel();
    shown_ = asked_;
    return;
  }
  if (problems_.empty()) {
    ask_for_entry();
  }
}

void Session::ask_for_entry() {
  cancelled_ = false;
  worker_.ask(
      {.number = ++asked_, .path = {}, .scenario = scenario(), .baseline = {}, .document = {}});
}

bool Session::poll() {
  if (std::optional<CollectiveAnswer> answer = collectives_.take()) {
    record_ = answer->record != nullptr ? std::move(answer->record) : record_;
    record_error_ = std::move(answer->error);
  }
  std::optional<Result> result = worker_.take();
  if (!result || result->number <= shown_) {
    return false;
  }
  shown_ = result->number;
  take(std::move(*result));
  return true;
}

void Session::take(Result result) {
  if (!result.path.empty() && result.path == opening_) {
    opening_.clear();
  }
  if (!result.error.empty()) {
    error_ = std::move(result.error);
    failure_ = std::move(result.failure);
    return;
  }
  if (result.record != nullptr) {
    record_ = std::move(result.record);
    record_error_.clear();
    at_home_ = false;
    if (!has_scenario()) {
      start(preset_scenario(presets().front()));  // the window has a scenario beside every view
    }
    if (on_opened) {
      on_opened(result.path);
    }
    if (on_record) {
      on_record();
    }
    return;
  }
  if (result.opened) {
    opened(result);
  }
  if (result.baseline != nullptr) {
    baseline_ = std::move(result.baseline);
  }
  if (result.document != nullptr && result.document != document_) {
    document_ = std::move(result.document);
    selection.reset();
    area.reset();
  }
}

void Session::opened(Result& result) {
  clear();  // but what was asked for since then goes on
  ring_.push_back({std::move(*result.opened), result.document});
  ++revision_;
  const bool imported = result.document != nullptr && result.document->imported != nullptr;
  problems_ = imported ? Problems{} : validate(resolved(ring_.front().scenario));
  file_ = std::move(result.file);
  set_saved();
  if (on_opened) {
    on_opened(result.path);
  }
}

void Session::settle() {
  worker_.wait();
  collectives_.wait();
  poll();
  worker_.wait();  // for the scenario that a collective was opened beside
  poll();
}

}  // namespace lockstep::app
