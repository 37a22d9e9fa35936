// Worker: the thread that plans, simulates and reads files while the window goes on. One request at
// a time; a newer one replaces one that waits and ends one that has run for a while, and results of
// older ones are known by their number. Work is ended where it calls its stop check, every few
// milliseconds.
//
// Errands are what views want computed for themselves, in pieces. They run while no request waits:
// one that comes ends the piece that runs, which is begun again later. Who no longer wants one lets
// go of it, and it is forgotten.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "visualizer/app/document.h"

namespace lockstep::app {

struct Request {
  std::uint64_t number = 0;
  std::string path;      ///< to open; empty: simulate `scenario`
  Scenario scenario;     ///< to simulate
  std::string baseline;  ///< also to be opened, to compare with; empty: none
  DocumentPtr document;  ///< with an empty path: what is shown, when it need not be simulated
  int step = -1;         ///< of that document's trace; -1: the one that it shows
};

struct Result {
  std::uint64_t number = 0;
  std::string path;                     ///< of the request
  std::optional<Scenario> opened = {};  ///< what a path held
  std::string file = {};                ///< Opened::file
  DocumentPtr document = {};            ///< null after an error
  DocumentPtr baseline = {};            ///< where one was to be opened
  RecordPtr record = {};                ///< where the path held a collective and no scenario
  std::string error = {};               ///< one line; empty when all went well
  std::exception_ptr failure = {};      ///< the same, as it was thrown
};

class Errand {
 public:
  virtual ~Errand() = default;
  /// One piece of the work, on the worker's thread; false when nothing is left. Hands over what it
  /// makes by itself. Throws nothing but what the stop check throws, and can then be called again.
  virtual bool step(const StopCheck& stop_check) = 0;
};

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Ends what runs; what waits is dropped.
  ~Worker();

  void ask(Request request);
  /// Ends the request that runs and drops the one that waits: no result comes.
  void cancel();
  /// How long the request that runs has been running; 0 when none does.
  double seconds() const;
  /// For as long as somebody else holds it.
  void add(const std::shared_ptr<Errand>& errand);
  /// The newest result since the last call, or none. Never waits.
  std::optional<Result> take();
  /// No request waits or runs.
  bool idle() const;
  /// Nor an errand.
  bool rests() const;
  /// Returns when it rests.
  void wait() const;

 private:
  void run();
  void run_request(std::unique_lock<std::mutex>& lock);
  void run_errand(std::unique_lock<std::mutex>& lock);
  /// Nothing when it was ended.
  std::optional<Result> answer(const Request& request);
  void check_request() const;
  void check_errand(const std::shared_ptr<Errand>& errand) const;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Request> next_;
  std::optional<Result> result_;
  std::vector<std::weak_ptr<Errand>> errands_;
  bool running_ = false;  ///< a request
  bool quit_ = false;
  std::chrono::steady_clock::time_point since_;  ///< of the request that runs
  // What checkpoints look at without the lock.
  std::atomic<bool> stop_ = false;   ///< what runs shall end
  std::atomic<bool> newer_ = false;  ///< a request waits
  std::thread thread_;               ///< last: it uses the others
};

}  // namespace lockstep::app
