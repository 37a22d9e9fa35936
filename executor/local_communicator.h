// LocalCommunicator: ranks are threads of one process and read each other's memory. The backend
// that needs nothing, and the reference that the others are tested against.
//
//     auto communicators = make_local_communicators(4, {.timeout = std::chrono::seconds(30)});
//     // thread r: communicators[r]->run({...});
//
// Every collective checks, before data moves, that its members came for the same. A wait that takes
// longer than the timeout, or a member that aborts, ends the job: everybody gets an error. Threads
// have to be joined before the buffers of any of them go.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/chunk_move.h"
#include "executor/exchange.h"
#include "executor/local_group.h"

namespace lockstep::exec {

class LocalCommunicator final : public Communicator {
 public:
  LocalCommunicator(int rank, std::shared_ptr<LocalGroup> group);
  ~LocalCommunicator() override;

  std::unique_ptr<Communicator> split(int colour, int key) override;
  void abort(std::string_view reason) noexcept override;

  /// With LocalOptions::record_moves: moves that this rank made, in order, since forget_moves(). To
  /// be read when no transfer is under way.
  std::span<const ChunkMove> moves() const { return moves_; }
  void forget_moves() { moves_.clear(); }

 protected:
  void execute(const Transfer& transfer, std::uint64_t sequence) override;

 private:
  void carry_out(const Transfer& transfer);
  void collective(const Transfer& transfer);
  void send(const Transfer& message);
  void recv(const Transfer& message);
  std::string describe(const Transfer& message) const;
  [[noreturn]] void throw_mismatch(const Transfer& message, const std::string& wrong);

  std::shared_ptr<LocalGroup> group_;
  MemberCounts counts_;
  std::uint64_t splits_ = 0;
  std::vector<ChunkMove> moves_;
  std::atomic<std::uint64_t> turn_{0};  ///< the transfer that may be carried out now
  Waker turn_waker_;
};

/// One communicator over all ranks of a new world, by rank.
std::vector<std::unique_ptr<LocalCommunicator>> make_local_communicators(
    int ranks, const LocalOptions& options = {});

}  // namespace lockstep::exec
