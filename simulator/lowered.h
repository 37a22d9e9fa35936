// Lowered: a section of a plan made ready for the event engine: per plan class the operations that
// take a place in a queue (all but alloc and free), with prices instead of shapes and with only
// those dependencies that the order of the queues does not already give.
//
// Messages between one rank and another in one direction are a queue, and pass messages of other
// pairs: NCCL gives every pair a communicator of its own, and recvs are posted early. The plan's
// order on the pipeline stream is the stricter one that can never deadlock.
//
// Prices are per distinct (work, shape, type) or (collective, elements, type), so a plan of
// millions of operations has some hundreds. A collective's or message's price also depends on its
// placement.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/plan.h"
#include "core/queues.h"
#include "core/trace.h"
#include "simulator/cost_model.h"

namespace lockstep::sim {

inline constexpr std::uint32_t kNoPartner = 0xffffffffU;

struct LoweredOperation {
  std::uint32_t operation = 0;  ///< index into the plan's program
  std::uint32_t price = 0;
  std::uint32_t first_dependency = 0;
  std::uint32_t partner = kNoPartner;  ///< send, recv: the other end, in the peer's program
  std::uint16_t dependencies = 0;
  std::int16_t peer = kNoPeer;
  OperationKind kind = OperationKind::kCompute;
  std::uint8_t queue = 0;  ///< core/queues.h
  std::uint8_t communicator = kNoCommunicator;
  bool host_sync : 1 = false;
  bool guarded : 1 = false;
  bool of_model : 1 = false;  ///< forward, backward, recompute: grows with the data
};

struct LoweredProgram {
  std::vector<LoweredOperation> operations;
  std::vector<std::uint32_t> dependencies;  ///< indices into operations
  std::array<std::vector<std::uint32_t>, kQueueCount> queues;

  std::span<const std::uint32_t> dependencies_of(const LoweredOperation& op) const {
    return {dependencies.data() + op.first_dependency, op.dependencies};
  }
};

/// Durations. Compute and host prices are fixed when they are added, prices of communication are
/// found when a placement first asks for them.
class Prices {
 public:
  /// Keeps references to both.
  Prices(const Plan& plan, const CostModel& costs) : plan_(plan), costs_(costs) {}

  std::uint32_t add(const Operation& op);
  /// Compute, copy and host operations.
  Nanoseconds duration(std::uint32_t price) const { return durations_[price]; }
  /// Collectives and messages.
  Nanoseconds duration(std::uint32_t price,
                       std::int32_t placement,
                       std::span<const GroupPlacement> placements);

 private:
  /// A PriceKey with the shape's index in the plan.
  struct Entry {
    OperationKind kind = OperationKind::kCompute;
    Work work = Work::kNone;
    Collective collective = Collective::kAllReduce;
    DType dtype = DType::kFp32;
    std::uint32_t shape = 0;
    std::int64_t elements = 0;
    bool operator==(const Entry&) const = default;
  };
  static std::uint64_t hash_of(const Entry& entry);
  PriceKey key_of(const Entry& entry) const;
  void grow();

  const Plan& plan_;
  const CostModel& costs_;
  std::vector<Entry> entries_;
  std::vector<Nanoseconds> durations_;
  std::vector<std::uint32_t> table_;                    ///< open addressing into entries_
  std::vector<std::vector<Nanoseconds>> by_placement_;  ///< [placement][price], -1 = not asked yet
};

struct Lowered {
  std::vector<LoweredProgram> programs;  ///< by plan class
  Prices prices;
  std::int64_t operations = 0;  ///< of the section, alloc and free included
};

/// Keeps references to the plan and the costs.
Lowered lower(const Plan& plan, const CostModel& costs, int section);

}  // namespace lockstep::sim
