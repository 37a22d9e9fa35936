// Engine: runs the lowered programs of one section against the clock.
//
// What exists: one host per rank class that issues operations in program order; in-order streams;
// groups and messages on which streams meet. What happens, in phases of one loop:
//
//   issue   the host hands an operation to its stream, `launch_overhead` after the one before; it
//           runs ahead of the device and stops only at operations that it has to wait for
//   arrive  the operation is the first of its stream, issued, and its dependencies have ended
//   start   compute and send: at once; collective: when all members have arrived; recv: when its
//           send has
//   end     what waited for it is looked at again
//
// Compute slows down while communication runs on the same device, so an end is an event that may
// move. Times depend on nothing but the plan, the prices and the perturbations: events of equal
// time leave in the order in which they were made. What it is not: memory, which counts in program
// order whatever the times are (core/report.h).
#pragma once

#include <cstdint>
#include <vector>

#include "core/stop_check.h"
#include "core/trace.h"
#include "simulator/event_queue.h"
#include "simulator/lowered.h"
#include "simulator/rank_classes.h"

namespace lockstep::sim {

enum class EventKind : std::uint8_t {
  kEnd,         ///< of what a stream computes
  kMessageEnd,  ///< of a send or recv
  kMeetingEnd,  ///< of a group's collective, for all members
  kWake,        ///< the head of a queue is issued
  kHost,        ///< the shared host issues
};

struct Happening {
  std::uint32_t rank = 0;          ///< class; kMeetingEnd: the group
  std::uint32_t version : 22 = 0;  ///< an end that has moved carries an old one
  std::uint32_t queue : 6 = 0;
  EventKind kind : 4 = EventKind::kEnd;
};

struct EngineInput {
  const Plan& plan;
  const CostModel& costs;
  const WhatIf& what_if;
  const RankClasses& ranks;
  Lowered& lowered;  ///< prices of communication are found on the way
  const StopCheck& stop_check;
};

class Engine {
 public:
  explicit Engine(const EngineInput& input);

  /// Spans by rank class, and the ranks that could not go on.
  void run();
  TraceStep take_step();
  std::vector<Stall> take_stalls() { return std::move(stalls_); }
  std::uint64_t events() const { return events_.pushed(); }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffU;
  static constexpr std::uint32_t kEnded =
      0x80000000U;  ///< of Rank::status; the bits below: who waits

  struct QueueState {
    std::uint32_t head = 0;        ///< into the program's queue
    std::uint16_t dependency = 0;  ///< of the head: those before have ended
    bool busy = false;             ///< the head has arrived
    bool woken = false;            ///< an event will come when the head is issued
  };
  /// What the compute stream runs now; its end moves with the speed.
  struct Running {
    double left_ns = 0;  ///< at full speed
    Nanoseconds since = 0;
    std::uint32_t version = 0;
    bool active = false;
  };
  struct Rank {
    const LoweredProgram* program = nullptr;
    const RankClass* klass = nullptr;
    std::vector<Span> spans;
    std::vector<std::uint32_t> status;  ///< by operation
    std::array<QueueState, kQueueCount> queues;
    std::array<double, kQueueCount> speed{};  ///< of compute, while the queue communicates
    Running running;
    double full_speed = 1;     ///< the lowest of `speed`
    std::uint32_t cursor = 0;  ///< next operation that the host issues
    std::uint32_t taken = 0;   ///< single_connection: operations before have arrived
    Nanoseconds host = 0;
    std::uint32_t host_waits_for = kNobody;
    std::uint32_t wait_for_host = 0;  ///< queues
    bool failed = false;
  };
  /// Members that have arrived at a group's next collective.
  struct Meeting {
    std::uint32_t arrived = 0;
    std::vector<std::uint32_t> operations;  ///< by member class
  };

  void happen(Nanoseconds time,
              EventKind kind,
              std::uint32_t rank,
              std::uint32_t queue = 0,
              std::uint32_t version = 0);
  void issue_until(std::uint32_t rank, std::uint32_t operation);
  void issue_next(std::uint32_t rank, Nanoseconds after);
  void issue_shared(Nanoseconds now);
  void wake_shared_host(Nanoseconds now);
  void resume_host(std::uint32_t rank, Nanoseconds now);
  void look_at_all(std::uint32_t rank, std::uint32_t queues, Nanoseconds now);
  void look_at(std::uint32_t rank, std::uint32_t queue, Nanoseconds now);
  bool issued(std::uint32_t rank, std::uint32_t queue, std::uint32_t operation, Nanoseconds now);
  bool may_be_taken(const Rank& state, std::uint32_t operation) const;
  void take(std::uint32_t rank, Nanoseconds now);
  bool dependencies_ended(Rank& state, std::uint32_t queue, const LoweredOperation& op);
  void arrive(std::uint32_t rank, std::uint32_t operation, Nanoseconds now);
  void start(std::uint32_t rank, std::uint32_t operation, Nanoseconds now);
  void arrive_at_group(std::uint32_t rank, std::uint32_t operation, Nanoseconds now);
  void arrive_at_message(std::uint32_t rank, std::uint32_t operation, Nanoseconds now);
  void begin_message(std::uint32_t rank, std::uint32_t operation, Nanoseconds now, Nanoseconds end);
  void begin_communication(std::uint32_t rank,
                           std::uint32_t operation,
                           std::int32_t placement,
                           Nanoseconds now);
  void set_speed(std::uint32_t rank, std::uint32_t queue, double speed, Nanoseconds now);
  void schedule_end(std::uint32_t rank, Nanoseconds now);
  void end(std::uint32_t rank, std::uint32_t operation, Nanoseconds now);
  void end_compute(const Happening& what, Nanoseconds now);
  void end_message(const Happening& what, Nanoseconds now);
  std::uint32_t head_of(const Happening& what) const;
  void end_meeting(std::uint32_t number, Nanoseconds now);
  double work_of(const Rank& state, const LoweredOperation& op) const;
  void find_stalls(Nanoseconds last);
  void add_stall(std::uint32_t rank, std::uint32_t operation);
  void refuse_deadlock() const;

  EngineInput in_;
  Nanoseconds launch_;  ///< host time per operation
  Nanoseconds failure_;
  std::vector<double> speed_beside_;  ///< by placement
  std::vector<Rank> ranks_;
  std::vector<Meeting> meetings_;  ///< by group
  EventQueue<Happening> events_;
  std::uint32_t next_to_issue_ = 0;  ///< host_shared: whose turn it is
  Nanoseconds shared_host_ = 0;
  bool host_idle_ = true;
  Nanoseconds end_ = 0;
  std::vector<Stall> stalls_;
};

}  // namespace lockstep::sim
