// LocalGroup: the memory that the members of one local communicator meet in.
//
// Each member has a slot. Entering a collective writes what the member wants to do, and where its
// buffers are, into the slot and counts an arrival; when all have arrived, everybody may read all
// slots. Entries alternate between two places: a member writes its entry of transfer s + 2 over
// that of s, and it comes to s + 2 only after all have entered s + 1, that is, have left s.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/communicator.h"
#include "executor/local_world.h"
#include "executor/mailbox.h"
#include "executor/waker.h"

namespace lockstep::exec {

/// Members that have come to the same place, counted; each time all of them do.
struct Meeting {
  std::atomic<std::uint64_t> count{0};
  Waker waker;

  /// Counts this member in; the last of `members` wakes the others.
  void come(std::uint64_t members) {
    if ((count.fetch_add(1) + 1) % members == 0) {
      waker.notify();
    }
  }
};

/// Small all-reduces travel in the slot, so that members meet once instead of twice.
inline constexpr std::int64_t kEagerBytes = 4096;
/// Partial sums of rings and trees that have no room in the output; two halves.
inline constexpr std::int64_t kScratchBytes = 128 << 10;

struct alignas(64) Slot {
  std::array<Transfer, 2> entry;
  std::atomic<std::uint64_t> entered{0};  ///< collectives begun
  alignas(64) std::atomic<std::uint64_t> steps{0};
  Waker steps_waker;
  std::array<std::unique_ptr<std::byte[]>, 2> scratch;  ///< made when first needed
  alignas(64) std::array<std::array<std::byte, kEagerBytes>, 2> eager{};
};

class LocalGroup {
 public:
  LocalGroup(std::shared_ptr<LocalWorld> world, std::uint64_t number, std::vector<int> members);
  LocalGroup(const LocalGroup&) = delete;
  LocalGroup& operator=(const LocalGroup&) = delete;
  ~LocalGroup();

  LocalWorld& world() { return *world_; }
  std::uint64_t number() const { return number_; }  ///< of the group in its world
  int size() const { return static_cast<int>(members_.size()); }
  const std::vector<int>& members() const { return members_; }
  int member(int index) const { return members_[static_cast<std::size_t>(index)]; }
  Slot& slot(int index) { return slots_[static_cast<std::size_t>(index)]; }
  Mailbox& mailbox(int index) { return mailboxes_[static_cast<std::size_t>(index)]; }

  Meeting arrivals;  ///< at the beginning of a collective
  Meeting finishes;  ///< at its end

 private:
  template <typename Act>
  void each_waker(Act act);

  std::shared_ptr<LocalWorld> world_;
  std::uint64_t number_;
  std::vector<int> members_;
  std::unique_ptr<Slot[]> slots_;
  std::unique_ptr<Mailbox[]> mailboxes_;
};

}  // namespace lockstep::exec
