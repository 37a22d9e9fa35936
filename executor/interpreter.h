// Interpreter: one rank's program, run for real. It walks the operations in host issue order: alloc
// and free as they come, computation on this thread, communication and copies on the device's other
// streams, ordered by the plan's dependencies alone. The same loop for every strategy: it reads
// nothing but operations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/queues.h"
#include "core/trace.h"
#include "core/training.h"
#include "executor/communicator.h"
#include "executor/device.h"
#include "executor/host.h"
#include "executor/rank_memory.h"

namespace lockstep::exec {

struct InterpreterInput {
  const Plan& plan;
  const TrainingSpec& training;
  int rank = 0;
  Device& device;
  std::span<const std::unique_ptr<Communicator>> communicators;  ///< by Plan::communicators
  Host& host;
};

class Interpreter {
 public:
  explicit Interpreter(const InterpreterInput& input);

  /// Runs section `section` to its end. Throws what an operation threw; the rank is then lost.
  void run(int section, std::int64_t iteration);

  /// Of the last run: all but alloc and free, in program order, by CLOCK_MONOTONIC.
  std::span<const Span> spans() const { return spans_; }
  const RankMemory& memory() const { return memory_; }

 private:
  struct Issued {
    Event event;
    bool waits = false;  ///< on a stream of its own: others have to wait for it
  };

  void begin(int section, std::int64_t iteration);
  void step_over(std::uint32_t index);
  void compute(std::uint32_t index);
  void communicate(std::uint32_t index);
  void work(std::uint32_t index);
  void resolve(const Operation& op);
  bool skipped(const Operation& op);
  StreamId stream_of(const Operation& op);
  void host_waits_for(const Operation& op);
  void stream_waits_for(StreamId stream, const Operation& op);
  void finish_issue(std::uint32_t index, StreamId stream, const Operation& op);
  void finish_spans();
  Operand* operands(const Operation& op) { return resolved_.data() + op.first_view; }
  Span& span(std::uint32_t index) { return spans_[slot_[index]]; }

  InterpreterInput in_;
  RankMemory memory_;
  std::vector<std::int32_t> coordinates_;  ///< by Axis
  const Program* program_ = nullptr;
  RunPlace place_;
  int section_ = 0;
  /// When the host had done its last computation or wait. Handing work to streams takes it a
  /// microsecond, which is not shown.
  Nanoseconds host_free_ = 0;
  QueueNumbering queues_;
  std::vector<Issued> issued_;     ///< by operation
  std::vector<Operand> resolved_;  ///< by view of the program
  std::vector<Span> spans_;
  std::vector<std::uint32_t> slot_;       ///< operation -> span
  std::vector<TransferTimes> transfers_;  ///< by span
};

}  // namespace lockstep::exec
