// Session: what is open and what is selected. The window asks it every frame; edits are handed to
// the worker, and the newest result is what is shown.
//
//     session.edit([](Scenario& s) { s.strategy.data.degree = 8; });   // one undo step
//     session.poll();                                                   // once a frame
//     if (const DocumentPtr document = session.document()) ...
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "core/problems.h"
#include "visualizer/app/collective_runner.h"
#include "visualizer/app/worker.h"
#include "visualizer/models/lanes.h"

namespace lockstep::app {

/// An operation of a rank; every view shows the same one.
struct Selection {
  std::int32_t rank = 0;
  std::uint32_t operation = 0;
  bool operator==(const Selection&) const = default;
};

class Session {
 public:
  Session() = default;

  bool has_scenario() const { return !ring_.empty(); }
  /// As edited: what is left to others (0, 1) is still open.
  const Scenario& scenario() const { return ring_[at_].scenario; }
  /// All problems of the resolved scenario; while there are any, nothing is simulated.
  const Problems& problems() const { return problems_; }

  /// Changes with every edit, undo and opening: for caches.
  std::uint64_t revision() const { return revision_; }

  /// What is shown; of an older scenario while the worker is busy. Null until there is one.
  const DocumentPtr& document() const { return document_; }
  /// Seconds that the newest request has been running.
  double seconds() const { return worker_.seconds(); }
  /// Ends what is simulated or opened; what is shown stays.
  void cancel();
  /// The simulation was cancelled: what is shown is not of the scenario, until again().
  bool cancelled() const { return cancelled_; }
  void again();
  bool busy() const { return !worker_.idle() || !collectives_.idle(); }
  /// Also when views have something computed.
  bool working() const { return !worker_.rests() || !collectives_.idle(); }
  /// Done on the worker for as long as the view holds it.
  void add(const std::shared_ptr<Errand>& errand) { worker_.add(errand); }
  /// What is shown comes from another tool: there is no plan and nothing to set.
  bool is_imported() const { return document_ != nullptr && document_->imported != nullptr; }
  /// The path that is being opened, or "".
  const std::string& opening() const { return opening_; }

  /// Reads a file, a folder or a preset in the background; `baseline`, if any, is what it is
  /// compared with.
  void open(const std::string& path, const std::string& baseline = "");
  /// Reads what the document that is shown is compared with.
  void open_baseline(const std::string& path);
  /// Replaces everything.
  void start(Scenario scenario);
  /// Another step of the trace that is shown, in the background.
  void show_step(int step);
  /// Nothing is open any more.
  void close();
  /// The start screen, while what is open stays as it is.
  bool at_home() const { return at_home_ || !has_scenario(); }
  void go_home() { at_home_ = true; }
  void leave_home() { at_home_ = false; }

  /// The scenario.json that was opened or saved to; "" when there is none.
  const std::string& file() const { return file_; }
  /// Edits that no file has.
  bool unsaved() const { return unsaved_; }
  /// Of what is open, for the title: a file's name, else the scenario's.
  std::string name() const;
  /// NotSupportedError when it cannot be written.
  void save(const std::string& path);

  void edit(const std::function<void(Scenario&)>& change);
  void undo();
  void redo();
  bool can_undo() const { return at_ > 0; }
  bool can_redo() const { return at_ + 1 < ring_.size(); }

  /// Takes results from the worker. True when what is shown has changed.
  bool poll();
  /// Waits until nothing runs, then polls: for pictures and tests.
  void settle();

  /// What went wrong last, until it is dismissed.
  const std::string& error() const { return error_; }
  /// The same as it was thrown; null when it was not.
  const std::exception_ptr& failure() const { return failure_; }
  void set_error(std::string error) { error_ = std::move(error); }
  void dismiss_error() { error_.clear(); }

  /// What the metric cards compare with.
  const DocumentPtr& baseline() const { return baseline_; }
  void pin();
  void unpin() { baseline_.reset(); }

  /// The collective that the stepper walks through: opened, or asked for. Null until there is one.
  const RecordPtr& record() const { return record_; }
  /// Why there is none.
  const std::string& record_error() const { return record_error_; }
  CollectiveRunner& collectives() { return collectives_; }
  /// Called when a collective was opened from a file.
  std::function<void()> on_record;

  /// Called with every path that was opened.
  std::function<void(const std::string&)> on_opened;

  /// A view wants a file to compare with; the shell asks for it.
  bool asks_for_baseline = false;

  std::optional<Selection> selection;
  std::optional<view::TimeWindow> area;  ///< selected span of time
  std::optional<Nanoseconds> cursor;     ///< the time that all views point at
  bool playing = false;                  ///< a view moves the cursor: frames without input

 private:
  struct Entry {
    Scenario scenario;
    DocumentPtr document;  ///< of a file; null: simulated when it is shown
  };

  void clear();
  void show_entry();
  void push(Entry entry);
  void ask_for_entry();
  void take(Result result);
  void opened(Result& result);
  void set_saved();

  std::deque<Entry> ring_;
  std::size_t at_ = 0;
  Problems problems_;
  DocumentPtr document_;
  DocumentPtr baseline_;
  std::string opening_;
  std::string error_;
  std::exception_ptr failure_;
  std::string file_;
  std::string saved_;  ///< the scenario as text, as a file or a preset has it
  bool unsaved_ = false;
  bool at_home_ = false;
  bool cancelled_ = false;
  std::uint64_t revision_ = 0;
  std::uint64_t asked_ = 0;  ///< number of the newest request
  std::uint64_t shown_ = 0;  ///< of the newest result
  RecordPtr record_;
  std::string record_error_;
  CollectiveRunner collectives_;
  Worker worker_;
};

}  // namespace lockstep::app
