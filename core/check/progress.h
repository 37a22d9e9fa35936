// Progress: plays a section without times, to see whether all streams reach their end.
//
// An operation is done once it is issued, first in its stream and in its communicator's queue, its
// dependencies are done and, if others take part in it, all of them have got there (rule R2 of
// core/plan.h; send and recv meet, as NCCL's do). The host issues in program order and stops only
// at kHostSync. What is done never becomes undone and nothing is ever chosen, so the end state does
// not depend on the order of play: if something is left, every timing deadlocks.
//
// Played by classes: members of one class do the same at the same turn, so a class stands for all
// of its ranks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/check/plan_rules.h"

namespace lockstep {

class Progress {
 public:
  enum class Reason : std::uint8_t {
    kHost,           ///< the host waits for the result of `on` before it issues more
    kStream,         ///< behind `on` in its stream
    kQueue,          ///< behind `on` in its communicator
    kDependency,     ///< needs `on`
    kMember,         ///< a member of its group has to do `on`
    kPeer,           ///< `on` is the other end of the message
    kMissingMember,  ///< a member of its group (class of `on`) has nothing left to do with it
    kMissingPeer,    ///< the other end does not exist
    kNeverLaunched,  ///< needs `on`, which never launches
  };
  struct Wait {
    Reason reason = Reason::kHost;
    ClassOperation on;
  };

  Progress(const CheckContext& context, int section, const MessagePartners& partners);

  /// Plays until nothing moves any more.
  void run();
  /// First operations of all streams that have not reached their end, by class and stream.
  std::vector<ClassOperation> blocked() const;
  /// Everything that a blocked operation waits for, the nearest cause last.
  std::vector<Wait> waits_of(const ClassOperation& where) const;

 private:
  enum class State : std::uint8_t { kWaiting, kArrived, kDone };

  /// Operations in order, and how many of them are done.
  struct Line {
    std::vector<std::uint32_t> operations;
    std::size_t done = 0;

    bool ended() const { return done == operations.size(); }
    std::uint32_t head() const { return operations[done]; }
    bool is_head(std::uint32_t operation) const { return !ended() && head() == operation; }
  };
  struct ClassState {
    const Program* program = nullptr;
    std::array<Line, kStreamCount> streams;
    std::vector<Line> queues;  ///< by communicator
    Line syncs;                ///< the kHostSync operations
    std::vector<State> states;
    bool scheduled = false;
  };

  ClassState& at(int class_index) { return classes_[static_cast<std::size_t>(class_index)]; }
  const ClassState& at(int class_index) const {
    return classes_[static_cast<std::size_t>(class_index)];
  }
  const Operation& operation(const ClassOperation& where) const {
    return at(where.class_index).program->operations[where.operation];
  }
  static Line& stream_of(ClassState& state, const Operation& op) {
    return state.streams[static_cast<std::size_t>(op.stream)];
  }

  void fill_lines(int class_index);
  void schedule(int class_index);
  bool advance(int class_index);
  bool is_ready(const ClassState& state, std::uint32_t operation) const;
  bool try_finish(const ClassOperation& where);
  bool try_collective(const ClassOperation& where);
  bool try_message(const ClassOperation& where);
  void finish(const ClassOperation& where);
  const ClassOperation* partner_of(const ClassOperation& where) const;
  void add_partner_waits(const ClassOperation& where, std::vector<Wait>& waits) const;

  const CheckContext& context_;
  int section_;
  const MessagePartners& partners_;
  std::vector<ClassState> classes_;
  std::vector<std::vector<int>> arrived_;  ///< members that wait, by communicator and group
  std::vector<int> scheduled_;             ///< classes that may have something to do
};

}  // namespace lockstep
