// Arrivals: who came to a collective or message when, who came last, and how long the others
// waited for it. By order of arrival, not by duration: the last one waits least and looks fast.
//
//     const Arrivals all(index, {track, operation}, rank);
//     all.list().back()          // came last
//     all.waited()               // by all members together
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/trace_index.h"

namespace lockstep::view {

/// Members that did the same at the same times.
struct Arrival {
  TrackOperation operation;  ///< the member's own part
  std::int32_t rank = 0;     ///< the first of them
  std::int32_t count = 1;
  Nanoseconds issued = 0;
  Nanoseconds arrived = 0;
  Nanoseconds started = 0;
  Nanoseconds ended = 0;

  Nanoseconds waited() const { return started - arrived; }
};

class Arrivals {
 public:
  /// Of the operation `at`, which `rank` (of its track) took part in; empty when it is neither a
  /// collective nor a message. Members that never came to it are left out.
  Arrivals(const TraceIndex& index, const TrackOperation& at, int rank);

  /// By arrival, the first one first; of equal ones by rank.
  const std::vector<Arrival>& list() const { return list_; }
  bool empty() const { return list_.empty(); }
  /// Members in all.
  int members() const { return members_; }
  /// From the first arrival to the last.
  Nanoseconds spread() const;
  /// By all members together.
  Nanoseconds waited() const;
  /// How much earlier it would have begun without the last one: from the last arrival but one.
  Nanoseconds last_behind() const;

 private:
  std::vector<Arrival> list_;
  int members_ = 0;
};

/// "rank 3 came last, 1.20 ms behind; the other 7 waited 8.31 ms in all".
std::string arrivals_text(const Arrivals& arrivals, bool utf8 = false);

}  // namespace lockstep::view
