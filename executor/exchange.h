// Exchange: one member's part in one collective of a LocalGroup. It brings the members together,
// holds their descriptions against each other, and gives the algorithms (executor/algorithms.h) the
// buffers of all members, a count of steps to wait for, and a place to report moves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/chunk_move.h"
#include "executor/local_group.h"

namespace lockstep::exec {

/// What a member counts from one collective to the next. The same on all members.
struct MemberCounts {
  std::uint64_t collectives = 0;
  std::uint64_t finishes = 0;
  std::uint64_t steps = 0;
};

/// A move of one member, as the algorithms say it; begin and elements as in ChunkMove's bytes.
struct MovedChunk {
  int step = 0;
  int src = 0;
  int dst = 0;
  int chunk = 0;
  std::int64_t begin = 0;
  std::int64_t elements = 0;
  bool reduces = false;
};

class Exchange {
 public:
  /// `moves` receives the moves of this member when the world records them.
  Exchange(LocalGroup& group,
           int rank,
           const Transfer& transfer,
           MemberCounts& counts,
           std::vector<ChunkMove>& moves);

  int rank() const { return rank_; }
  int size() const { return group_.size(); }
  const Transfer& transfer() const { return transfer_; }
  std::int64_t bytes_of(std::int64_t elements) const { return elements * element_bytes_; }
  bool is_eager() const { return eager_; }
  bool is_observed() const { return observed_; }

  /// Waits until all members are here, and throws if they did not come for the same.
  void enter();
  /// Waits until all members have done their part: after it buffers may be used again.
  void finish();

  /// Buffers of member `index`, from element `offset` on. After enter().
  const std::byte* in(int index, std::int64_t offset = 0) const {
    return static_cast<const std::byte*>(entry(index).in) + bytes_of(offset);
  }
  std::byte* out(int index, std::int64_t offset = 0) const {
    return static_cast<std::byte*>(entry(index).out) + bytes_of(offset);
  }
  bool has_out(int index) const { return entry(index).out != nullptr; }
  /// The copy of a small input that travels in the slot.
  const std::byte* eager(int index) const { return group_.slot(index).eager[parity()].data(); }
  /// Memory for partial sums of `half` 0 or 1, kScratchBytes / 2 each.
  std::byte* scratch(int index, std::uint64_t half) const {
    return group_.slot(index).scratch[half].get();
  }
  void make_scratch();

  /// Steps of this collective that this member has done; others wait for them.
  void publish(std::uint64_t steps);
  void await(int index, std::uint64_t steps);
  /// All members publish this many in all.
  void end_steps(std::uint64_t steps) { counts_.steps += steps; }

  /// Does `work`, which moves the chunk, and reports it.
  template <typename Work>
  void move(const MovedChunk& moved, Work work) {
    if (!observed_) {
      work();
      return;
    }
    const Clock::time_point begin = Clock::now();
    work();
    report(moved, begin);
  }
  /// A move that began at `begin` and is done but for the throttle.
  void report(const MovedChunk& moved, Clock::time_point begin);

  /// Copies, where the two differ.
  static void copy(std::byte* to, const std::byte* from, std::int64_t bytes);

 private:
  const Transfer& entry(int index) const { return group_.slot(index).entry[parity()]; }
  std::size_t parity() const { return sequence_ % 2; }
  void check_members();
  std::string describe(int index) const;
  std::string what() const;

  /// Waits for `reached`; `missing(index)` names members to blame when it takes too long.
  template <typename Reached, typename Missing>
  void wait(Waker& waker, Reached reached, Missing missing, std::string_view blame);
  [[noreturn]] void throw_timeout(const std::string& missing, std::string_view blame);

  LocalGroup& group_;
  LocalWorld& world_;
  const int rank_;
  const Transfer& transfer_;
  MemberCounts& counts_;
  std::vector<ChunkMove>& moves_;
  const std::uint64_t sequence_;
  const std::int64_t element_bytes_;
  const bool observed_;
  const bool eager_;
  const Deadline deadline_;
};

}  // namespace lockstep::exec
