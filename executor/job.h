// Job: all ranks of a plan in this process, a thread each, on the `local` backend. The main thread
// says which section runs next; every rank runs it and waits for the next word, so that decisions
// (stop, evaluate, save) are taken in one place and hold for all.
//
//     Job job(plan, scenario.training, host, {});
//     job.run(plan.find(SectionKind::kInit), 0);
//     job.run(&plan.step(i), i);
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/plan.h"
#include "core/trace.h"
#include "core/training.h"
#include "executor/cpu_device.h"
#include "executor/host.h"
#include "executor/interpreter.h"
#include "executor/local_communicator.h"

namespace lockstep::exec {

struct JobOptions {
  /// That share one fp32 matrix product of a rank, where the library can; all else is one thread's.
  int kernel_threads = 1;
  CpuDeviceOptions device;
  LocalOptions local;
};

class Job {
 public:
  /// Plan, training and host must outlive the job.
  Job(const Plan& plan, const TrainingSpec& training, Host& host, const JobOptions& options);
  /// The same with a host for each rank.
  Job(const Plan& plan,
      const TrainingSpec& training,
      std::span<Host* const> hosts,
      const JobOptions& options);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job();

  /// Runs one section on all ranks and returns when all have ended it. Throws what the first rank
  /// threw; the job is then over.
  void run(const Section& section, std::int64_t iteration);

  /// The last run as a step of a trace, one track per rank, by the clock since the step began.
  TraceStep trace_step() const;

  int ranks() const { return static_cast<int>(members_.size()); }
  const CpuDevice& device(int rank) const { return at(rank).device; }
  CpuDevice& device(int rank) { return members_[static_cast<std::size_t>(rank)]->device; }
  const RankMemory& memory(int rank) const { return at(rank).interpreter->memory(); }
  std::span<const std::unique_ptr<Communicator>> communicators(int rank) const {
    return at(rank).communicators;
  }

 private:
  struct Member {
    explicit Member(const CpuDeviceOptions& options) : device(options) {}
    CpuDevice device;
    std::unique_ptr<Communicator> world;
    std::vector<std::unique_ptr<Communicator>> communicators;  ///< by Plan::communicators
    std::unique_ptr<Interpreter> interpreter;
    std::thread thread;
  };
  struct Command {
    int section = -1;  ///< -1: end
    std::int64_t iteration = 0;
  };

  const Member& at(int rank) const { return *members_[static_cast<std::size_t>(rank)]; }
  void serve(int rank, int kernel_threads);
  void join_groups(int rank);
  void report(int rank, const std::exception_ptr& error);

  const Plan& plan_;
  std::vector<std::unique_ptr<Member>> members_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t commands_ = 0;  ///< given so far
  Command command_;
  int busy_ = 0;
  std::exception_ptr failure_;
  bool failure_follows_ = false;  ///< from another one
};

}  // namespace lockstep::exec
