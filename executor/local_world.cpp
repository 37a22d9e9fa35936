#include "executor/local_world.h"

#include <algorithm>

#include <fmt/format.h>

#include "executor/local_group.h"

namespace lockstep::exec {

LocalWorld::LocalWorld(int ranks, const LocalOptions& options)
    : options_(options), throttle_(ranks, options.link), wakers_{&sleepers_} {}

void LocalWorld::sleep_until(Clock::time_point until) {
  sleepers_.wait([this] { return failed(); }, until);
}

void LocalWorld::fail(int rank, ErrorKind kind, std::string_view reason) noexcept {
  const std::lock_guard lock(mutex_);
  if (failed_.load()) {
    return;
  }
  failed_rank_ = rank;
  failure_kind_ = kind;
  failure_ = reason;
  failed_.store(true);
  for (Waker* const waker : wakers_) {
    waker->notify();
  }
}

void LocalWorld::throw_failure(int rank, std::string_view waiting_in) const {
  const std::lock_guard lock(mutex_);
  throw Error(
      failure_kind_,
      "communicator",
      fmt::format(
          "rank {} gave up {}: rank {} failed: {}", rank, waiting_in, failed_rank_, failure_));
}

void LocalWorld::attach(Waker& waker) {
  const std::lock_guard lock(mutex_);
  wakers_.push_back(&waker);
}

void LocalWorld::detach(Waker& waker) {
  const std::lock_guard lock(mutex_);
  wakers_.erase(std::find(wakers_.begin(), wakers_.end(), &waker));
}

std::shared_ptr<LocalGroup> LocalWorld::group(const GroupName& name,
                                              const std::vector<int>& members) {
  std::shared_ptr<LocalGroup> group;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    group = groups_[name].lock();
    number = next_group_++;
  }
  if (group != nullptr) {
    return group;
  }
  // Made outside the lock, since it attaches its Wakers; another member may be first.
  auto fresh = std::make_shared<LocalGroup>(shared_from_this(), number, members);
  const std::lock_guard lock(mutex_);
  group = groups_[name].lock();
  if (group == nullptr) {
    group = fresh;
    groups_[name] = group;
  }
  return group;
}

}  // namespace lockstep::exec
