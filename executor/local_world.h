// LocalWorld: what the ranks of one process share: options, links, the first failure, and the
// groups that are being formed. It knows all Wakers on which a rank may sleep, so that a failure
// wakes everybody at once.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "executor/communicator.h"
#include "executor/throttle.h"
#include "executor/waker.h"

namespace lockstep::exec {

class LocalGroup;

struct LocalOptions {
  std::chrono::nanoseconds timeout = std::chrono::minutes(10);
  Algorithm algorithm = Algorithm::kAuto;  ///< of transfers that leave it open
  LinkLimit link = {};                     ///< of every ordered pair of ranks
  bool record_moves = false;               ///< keep every chunk move, for the stepper
};

class LocalWorld : public std::enable_shared_from_this<LocalWorld> {
 public:
  LocalWorld(int ranks, const LocalOptions& options);

  const LocalOptions& options() const { return options_; }
  /// Moves are looked at one by one: recorded, or slowed down.
  bool observes_moves() const { return options_.record_moves || throttle_.is_set(); }
  Throttle& throttle() { return throttle_; }
  /// Returns at `until`, or when a rank fails.
  void sleep_until(Clock::time_point until);

  bool failed() const { return failed_.load(); }
  /// The first call counts: who failed, why, and what the others throw (a timeout stays one).
  void fail(int rank, ErrorKind kind, std::string_view reason) noexcept;
  [[noreturn]] void throw_failure(int rank, std::string_view waiting_in) const;

  void attach(Waker& waker);
  void detach(Waker& waker);

  /// The group of this name; made by the first member that asks. Members hold it before any drops
  /// it.
  using GroupName = std::tuple<std::uint64_t, std::uint64_t, int>;  // parent, split of it, colour
  std::shared_ptr<LocalGroup> group(const GroupName& name, const std::vector<int>& members);

 private:
  LocalOptions options_;
  Throttle throttle_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  int failed_rank_ = -1;
  ErrorKind failure_kind_ = ErrorKind::kRankFailed;
  std::string failure_;
  std::vector<Waker*> wakers_;
  std::map<GroupName, std::weak_ptr<LocalGroup>> groups_;
  std::uint64_t next_group_ = 0;
  Waker sleepers_;
};

}  // namespace lockstep::exec
