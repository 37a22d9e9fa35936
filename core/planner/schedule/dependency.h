// Who waits for whom in a schedule, and an order in which everything can run.
//
// The rules (semantics of torch.distributed.pipelining; all other order is the row of the rank):
//   forward of stage s    needs the output of stage s-1:  its forward, or RECV_F where ranks change
//   backward of stage s   needs the gradient of stage s+1: its B or I, or RECV_B; on the last stage
//                         its own forward
//   weight gradient       needs its own I, earlier in the same row
//   RECV                  needs the matching SEND of the other rank; a SEND never waits
// A schedule without send and receive actions is judged by its compute actions alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/planner/schedule/schedule.h"

namespace lockstep {

/// Where an action stands: schedule.ranks[rank][index].
struct ActionPlace {
  std::int32_t rank = 0;
  std::int32_t index = 0;

  friend bool operator==(const ActionPlace&, const ActionPlace&) = default;
};

/// The rules above as a table: asks what an action needs and remembers what has run.
class DependencyTracker {
 public:
  explicit DependencyTracker(const Schedule& schedule);

  /// The action of the schedule that has to run before this one, or none. For a need that either B
  /// or I of the next stage meets, the answer names B.
  std::optional<Action> need_of(const Action& action) const;
  /// True when the need of `action` has run.
  bool is_ready(const Action& action) const;
  void mark_run(const Action& action);
  /// The rank where an action may become ready because `action` has run; none if nobody waits.
  std::optional<std::int32_t> rank_waiting_for(const Action& action) const;

 private:
  std::size_t flag_of(const Action& action) const;

  const Schedule& schedule_;
  bool with_communication_;
  std::vector<std::uint8_t> has_run_;  ///< by (kind class, stage, micro-batch)
};

struct RunOrder {
  std::vector<ActionPlace> order;  ///< every action after all that it needs; complete if no cycle
  /// Empty when everything runs. Otherwise actions of which each waits for one that stands behind
  /// the next (and the last for one behind the first); a single one may wait for nothing that runs.
  std::vector<ActionPlace> cycle;
};

/// O(number of actions): each rank runs as far as it can and wakes the ranks that wait for it.
RunOrder find_run_order(const Schedule& schedule);

/// "rank 0: 0B0 waits for 1B0; rank 1: 1F1 waits for 0F1; ..." for a cycle of find_run_order.
std::string describe_cycle(const Schedule& schedule, const std::vector<ActionPlace>& cycle);

}  // namespace lockstep
