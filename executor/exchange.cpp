#include "executor/exchange.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace lockstep::exec {

namespace {

Nanoseconds nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

bool travels_in_slot(const Transfer& transfer) {
  return transfer.kind == OperationKind::kCollective &&
         transfer.collective == Collective::kAllReduce && transfer.algorithm == Algorithm::kAuto &&
         transfer.elements * size_of(transfer.dtype) <= kEagerBytes;
}

/// Whether two members came for the same thing.
bool agree(const Transfer& a, const Transfer& b) {
  const bool same_program = a.label.class_index == b.label.class_index;
  return a.collective == b.collective && a.elements == b.elements && a.dtype == b.dtype &&
         a.reduction == b.reduction && a.peer == b.peer && a.algorithm == b.algorithm &&
         a.label.section == b.label.section && (!same_program || a.label.index == b.label.index);
}

}  // namespace

Exchange::Exchange(LocalGroup& group,
                   int rank,
                   const Transfer& transfer,
                   MemberCounts& counts,
                   std::vector<ChunkMove>& moves)
    : group_(group),
      world_(group.world()),
      rank_(rank),
      transfer_(transfer),
      counts_(counts),
      moves_(moves),
      sequence_(counts.collectives++),
      element_bytes_(size_of(transfer.dtype)),
      observed_(world_.observes_moves()),
      eager_(!observed_ && travels_in_slot(transfer)),
      deadline_(Clock::now() + world_.options().timeout) {}

template <typename Reached, typename Missing>
void Exchange::wait(Waker& waker, Reached reached, Missing missing, std::string_view blame) {
  waker.wait([&] { return reached() || world_.failed(); }, deadline_);
  if (reached()) {
    return;
  }
  if (world_.failed()) {
    world_.throw_failure(group_.member(rank_), what());
  }
  std::string names;
  for (int i = 0; i < size(); ++i) {
    if (missing(i)) {
      names += fmt::format("{}rank {} (at #{})",
                           names.empty() ? "" : ", ",
                           group_.member(i),
                           group_.slot(i).entered.load());
    }
  }
  throw_timeout(names, blame);
}

void Exchange::throw_timeout(const std::string& missing, std::string_view blame) {
  const std::string text =
      fmt::format("{} timed out after {} s: {} {}",
                  what(),
                  std::chrono::duration<double>(world_.options().timeout).count(),
                  blame,
                  missing);
  // Members that come later must not touch this member's buffers.
  world_.fail(group_.member(rank_), ErrorKind::kTimeout, text);
  throw TimeoutError("communicator", fmt::format("rank {}: {}", group_.member(rank_), text));
}

void Exchange::enter() {
  Slot& slot = group_.slot(rank_);
  slot.entry[parity()] = transfer_;
  if (eager_) {
    copy(slot.eager[parity()].data(),
         static_cast<const std::byte*>(transfer_.in),
         bytes_of(transfer_.elements));
  }
  slot.entered.store(sequence_ + 1, std::memory_order_release);
  const auto members = static_cast<std::uint64_t>(size());
  group_.arrivals.come(members);
  const std::uint64_t all = (sequence_ + 1) * members;
  wait(
      group_.arrivals.waker,
      [&] { return group_.arrivals.count.load() >= all; },
      [&](int index) { return group_.slot(index).entered.load() <= sequence_; },
      "missing");
  check_members();
}

void Exchange::finish() {
  const auto members = static_cast<std::uint64_t>(size());
  group_.finishes.come(members);
  const std::uint64_t all = ++counts_.finishes * members;
  wait(
      group_.finishes.waker,
      [&] { return group_.finishes.count.load() >= all; },
      [&](int index) { return index != rank_; },
      "not all of these have finished:");
}

void Exchange::publish(std::uint64_t steps) {
  Slot& slot = group_.slot(rank_);
  slot.steps.store(counts_.steps + steps);
  slot.steps_waker.notify();
}

void Exchange::await(int index, std::uint64_t steps) {
  if (steps == 0) {
    return;  // a member may have published fewer steps of the collective before than were counted
  }
  Slot& slot = group_.slot(index);
  const std::uint64_t wanted = counts_.steps + steps;
  wait(
      slot.steps_waker,
      [&] { return slot.steps.load() >= wanted; },
      [&](int other) { return other == index; },
      "no progress of");
}

void Exchange::make_scratch() {
  for (auto& half : group_.slot(rank_).scratch) {
    if (half == nullptr) {
      half = std::unique_ptr<std::byte[]>(new std::byte[kScratchBytes / 2]);
    }
  }
}

void Exchange::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (to != from && bytes > 0) {
    std::memmove(to, from, static_cast<std::size_t>(bytes));
  }
}

void Exchange::report(const MovedChunk& moved, Clock::time_point begin) {
  if (moved.src == moved.dst) {
    return;
  }
  const std::int64_t bytes = bytes_of(moved.elements);
  Throttle& throttle = world_.throttle();
  if (throttle.is_set()) {
    world_.sleep_until(
        throttle.reserve(group_.member(moved.src), group_.member(moved.dst), bytes, begin));
    if (world_.failed()) {
      world_.throw_failure(group_.member(rank_), what());
    }
  }
  if (world_.options().record_moves) {
    moves_.push_back({transfer_.label,
                      sequence_,
                      moved.step,
                      moved.src,
                      moved.dst,
                      moved.chunk,
                      bytes_of(moved.begin),
                      bytes,
                      moved.reduces,
                      nanoseconds(begin),
                      nanoseconds(Clock::now())});
  }
}

// ---- what they came for ------------------------------------------------------------------------

std::string Exchange::describe(int index) const {
  const Transfer& each = entry(index);
  return fmt::format(
      "{} of {} {}{}{}{}{} (section {}, operation {})",
      name_of(each),
      each.elements,
      name_of(each.dtype),
      each.reduction == Reduction::kNone ? "" : ", ",
      each.reduction == Reduction::kNone ? "" : name_of(each.reduction),
      each.peer < 0 ? "" : fmt::format(", root {}", each.peer),
      each.algorithm == Algorithm::kAuto ? "" : fmt::format(", {}", name_of(each.algorithm)),
      each.label.section,
      each.label.index);
}

std::string Exchange::what() const {
  std::string ranks;
  for (const int member : group_.members()) {
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", member);
  }
  return fmt::format("{}, #{} of group {{{}}}", describe(rank_), sequence_, ranks);
}

void Exchange::check_members() {
  for (int i = 0; i < size(); ++i) {
    if (agree(transfer_, entry(i))) {
      continue;
    }
    const std::string text =
        fmt::format("members do not agree on #{}: rank {} calls {}, rank {} calls {}",
                    sequence_,
                    group_.member(rank_),
                    describe(rank_),
                    group_.member(i),
                    describe(i));
    world_.fail(group_.member(rank_), ErrorKind::kRankFailed, text);
    throw RankFailedError("communicator", text);
  }
}

}  // namespace lockstep::exec
