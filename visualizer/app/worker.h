// Worker: the thread that plans, simulates and reads files while the window goes on. One request at
// a time; a newer one replaces one that waits, and results of older ones are known by their number.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "visualizer/app/document.h"

namespace lockstep::app {

struct Request {
  std::uint64_t number = 0;
  std::string path;   ///< to open; empty: simulate `scenario`
  Scenario scenario;  ///< to simulate
};

struct Result {
  std::uint64_t number = 0;
  std::string path;                     ///< of the request
  std::optional<Scenario> opened = {};  ///< what a path held
  DocumentPtr document = {};            ///< null after an error
  RecordPtr record = {};                ///< where the path held a collective and no scenario
  std::string error = {};               ///< one line; empty when all went well
};

class Worker {
 public:
  Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  /// Waits for what runs; what waits is dropped.
  ~Worker();

  void ask(Request request);
  /// The newest result since the last call, or none. Never waits.
  std::optional<Result> take();
  /// Nothing waits or runs.
  bool idle() const;
  /// Returns when idle.
  void wait() const;

 private:
  void run();
  static Result answer(const Request& request);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::optional<Request> next_;
  std::optional<Result> result_;
  bool running_ = false;
  bool quit_ = false;
  std::thread thread_;  ///< last: it uses the others
};

}  // namespace lockstep::app
