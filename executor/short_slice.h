// ask_for_short_slices: how a thread that mostly waits gets a busy core quickly.
#pragma once

namespace lockstep::exec {

/// From now on the calling thread runs in slices of 0.1 ms, in exchange for coming before threads
/// with longer ones when it wakes up. A stream beside the computation needs this: it waits for
/// messages and for the link, and every wait for a core after that is bandwidth lost. Linux 6.12
/// and later (sched_setattr(2), sched_runtime of SCHED_OTHER); elsewhere it has no effect.
/// Priorities and shares of the machine stay as they are.
void ask_for_short_slices() noexcept;

}  // namespace lockstep::exec
