// CollectiveRunner: carries out a collective in a child process, `lockstep collective --out FILE`,
// on a thread of its own, and hands over what it recorded. The window links no executor: what it
// shows of real work comes from programs that really work.
//
//     runner.ask({.algorithm = "tree", .ranks = 8, .bytes = 4096});
//     if (auto answer = runner.take()) ...    // once a frame; never waits
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "core/collective_record.h"

namespace lockstep::app {

using RecordPtr = std::shared_ptr<const CollectiveRecord>;

struct CollectiveRequest {
  std::string algorithm = "ring";  ///< ring, tree, direct
  int ranks = 4;
  std::int64_t bytes = 1024;
  bool operator==(const CollectiveRequest&) const = default;
};

struct CollectiveAnswer {
  RecordPtr record;   ///< null after an error
  std::string error;  ///< one line; empty when all went well
};

class CollectiveRunner {
 public:
  CollectiveRunner();
  CollectiveRunner(const CollectiveRunner&) = delete;
  CollectiveRunner& operator=(const CollectiveRunner&) = delete;
  /// Ends the child that runs.
  ~CollectiveRunner();

  /// The newest request replaces one that waits.
  void ask(CollectiveRequest request);
  std::optional<CollectiveAnswer> take();
  bool idle() const;
  void wait() const;

  /// `lockstep` in the folder of this program, unless it is set.
  std::string program() const;
  void set_program(std::string program);

 private:
  void run();
  CollectiveAnswer answer(const CollectiveRequest& request, const std::string& program);
  int run_child(const CollectiveRequest& request,
                const std::string& program,
                const std::string& folder);

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string program_;
  std::optional<CollectiveRequest> next_;
  std::optional<CollectiveAnswer> answer_;
  int child_ = 0;  ///< process; 0: none
  bool running_ = false;
  bool quit_ = false;
  std::thread thread_;  ///< started by the first request
};

}  // namespace lockstep::app
