// Sends and receives for the stage borders of a schedule that cross ranks.
//
// A border whose two stages live on one rank (the turn of the V in zbv, every border when P = 1)
// gets none. A send stands directly behind the forward or backward that makes its message.
#pragma once

#include "core/planner/schedule/schedule.h"

namespace lockstep {

enum class ReceivePlacement : std::uint8_t {
  /// PyTorch's lowering (_add_send_recv): the schedule is played in rounds, one compute action per
  /// rank and round, and the rank that sends also puts the receive into the peer's row, there and
  /// then. So sends and receives of all rows are cuts through ONE sequence of pairs, and even if
  /// both were blocking rendezvous, the first unfinished pair could always go on: no deadlock.
  kWithSend,
  /// Directly before the action that needs the message (Megatron-LM, and PyTorch's single-stage
  /// schedules): the receive buffer lives shortest. Safe only if a send does not wait for its
  /// receive: with rendezvous, 1F1B deadlocks because neighbours send to each other at once, which
  /// is why those codes fuse such a pair into one call.
  kBeforeUse,
};

/// The schedule with its send and receive actions. It must not have any yet, and must be free of
/// dependency cycles.
Schedule add_communication(const Schedule& schedule,
                           ReceivePlacement placement = ReceivePlacement::kWithSend);

}  // namespace lockstep
