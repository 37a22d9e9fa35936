#include "visualizer/app/session.h"

#include <utility>

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

void Session::pin() {
  if (!is_imported()) {
    baseline_ = document_;
  }
}

void Session::start(Scenario scenario) {
  close();
  push({std::move(scenario), nullptr});
}

void Session::close() {
  ring_.clear();
  at_ = 0;
  document_.reset();
  baseline_.reset();
  selection.reset();
  area.reset();
  cursor.reset();
  problems_ = {};
  opening_.clear();
  shown_ = asked_;  // what still runs is for what was open before
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
  selection.reset();
  area.reset();
  if (entry.document != nullptr) {
    document_ = entry.document;
    shown_ = asked_;
    return;
  }
  if (problems_.empty()) {
    worker_.ask({.number = ++asked_,
                 .path = {},
                 .scenario = entry.scenario,
                 .baseline = {},
                 .document = {}});
  }
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
    return;
  }
  if (result.record != nullptr) {
    record_ = std::move(result.record);
    record_error_.clear();
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
    const std::uint64_t number = result.number;
    close();
    shown_ = number;
    ring_.push_back({std::move(*result.opened), result.document});
    ++revision_;
    const bool imported = result.document != nullptr && result.document->imported != nullptr;
    problems_ = imported ? Problems{} : validate(resolved(ring_.front().scenario));
    if (on_opened) {
      on_opened(result.path);
    }
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

void Session::settle() {
  worker_.wait();
  collectives_.wait();
  poll();
  worker_.wait();  // for the scenario that a collective was opened beside
  poll();
}

}  // namespace lockstep::app
