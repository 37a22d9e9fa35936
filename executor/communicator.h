// Communicator: one rank's end of a group. Collectives and messages of PLAN.md, described by a
// Transfer; the only thing that differs between backends is how one is carried out.
//
// Views, counts and in-place use are core/operands.h's: `elements` is of one shard for all_gather,
// reduce_scatter, gather and scatter, of the whole message for the others. issue() puts the
// transfer on a stream of the caller's device; run() carries it out here and now. Collectives of
// one communicator are carried out in the order of issue, whatever streams they are on; messages in
// the order of their streams. What was issued is recorded here, where no plan is known.
//
//     communicator.issue(device, stream_id(op.stream),
//                        {.collective = Collective::kAllReduce, .reduction = Reduction::kSum,
//                         .dtype = DType::kFp32, .elements = n, .in = x, .out = x});
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/chunk_move.h"
#include "core/plan.h"
#include "core/trace.h"
#include "executor/device.h"

namespace lockstep::exec {

/// How a collective moves its data. kAuto adds in rank order, as kDirect does, at every size: what
/// is computed must not depend on how it was cut into messages.
enum class Algorithm : std::uint8_t { kAuto, kDirect, kRing, kTree };
std::string_view name_of(Algorithm algorithm);

/// When a transfer got how far, by CLOCK_MONOTONIC; as Span of core/trace.h.
struct TransferTimes {
  Nanoseconds arrived = 0;  ///< this rank was ready
  Nanoseconds started = 0;  ///< all members were
  Nanoseconds ended = 0;
};

struct Transfer {
  OperationKind kind = OperationKind::kCollective;  ///< or kSend, kRecv
  Collective collective = Collective::kAllReduce;
  Reduction reduction = Reduction::kNone;
  DType dtype = DType::kFp32;
  Algorithm algorithm = Algorithm::kAuto;
  std::int16_t peer = -1;  ///< root of a collective, other end of a message: index in the group
  std::uint32_t tag = 0;   ///< send, recv
  std::int64_t elements = 0;
  const void* in = nullptr;
  void* out = nullptr;
  TransferLabel label = {};
  TransferTimes* times = nullptr;  ///< filled in when not null; must live until the end
};

/// "all_reduce", "send": of the operation itself.
std::string_view name_of(const Transfer& transfer);

/// One entry of the record: what was asked for, without addresses.
struct IssuedTransfer {
  OperationKind kind = OperationKind::kCollective;
  Collective collective = Collective::kAllReduce;
  Reduction reduction = Reduction::kNone;
  DType dtype = DType::kFp32;
  std::int16_t peer = -1;
  std::uint32_t tag = 0;
  std::int64_t elements = 0;
  bool operator==(const IssuedTransfer&) const = default;
};

class Communicator {
 public:
  Communicator(int rank, std::vector<int> members) : rank_(rank), members_(std::move(members)) {}
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  /// This rank's index in the group.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  /// Ranks of the job, in group order.
  std::span<const int> members() const { return members_; }

  /// Appends the transfer to `stream` and returns. What goes wrong is thrown by the device.
  void issue(Device& device, StreamId stream, const Transfer& transfer);
  /// Carries the transfer out and returns when this rank's buffers may be used again.
  void run(const Transfer& transfer);

  /// Members that give the same colour form a new group, in order of (key, rank). Collective: all
  /// members call it. A negative colour: none, the result is null.
  virtual std::unique_ptr<Communicator> split(int colour, int key) = 0;

  /// Says that this rank cannot go on: every rank of the job that waits, or comes to wait, in any
  /// communicator gets an error that names this rank and `reason`. From any thread.
  virtual void abort(std::string_view reason) noexcept = 0;

  /// Everything issued since the last forget_issued(), in order.
  std::span<const IssuedTransfer> issued() const { return issued_; }
  void forget_issued() { issued_.clear(); }

 protected:
  /// The `sequence`-th collective (or message) of this communicator. On the thread of the stream;
  /// blocks.
  virtual void execute(const Transfer& transfer, std::uint64_t sequence) = 0;
  /// Puts execute() on the stream; a backend with streams of its own launches instead.
  virtual void launch(Device& device,
                      StreamId stream,
                      const Transfer& transfer,
                      std::uint64_t sequence);

 private:
  std::uint64_t note(const Transfer& transfer);

  int rank_;
  std::vector<int> members_;
  std::vector<IssuedTransfer> issued_;
  std::uint64_t collectives_ = 0;
  std::uint64_t messages_ = 0;
};

}  // namespace lockstep::exec
