#include "core/planner/data/zero_redundancy_optimizer.h"

#include "core/planner/data/partition.h"

namespace lockstep {

OwnerOptimizer::OwnerOptimizer(const DataParallelInputs& inputs)
    : Ddp(inputs), coordinate_(inputs.data_coordinate), owner_(weight_.size(), 0) {
  std::vector<std::int64_t> sizes;
  for (const std::int32_t parameter : ids_) {
    sizes.push_back(elements(parameter));
  }
  OwnerPartition partition;
  partition_by_size(sizes, context_.mesh.size(Axis::kData), partition);
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    owner_[index(ids_[i])] = partition.owner[i];
  }
  for (const std::int32_t i : partition.sequence) {
    dealt_.push_back(ids_[static_cast<std::size_t>(i)]);
  }
}

/// Gradients are whole everywhere, so every rank knows the norm without a message.
void OwnerOptimizer::for_each_normed(ProgramBuilder& b, const PieceVisitor& visit) {
  visit_all_ = true;
  for_each_owned(b, visit);
  visit_all_ = false;
}

/// Owner after owner sends its parameters, largest first, as they were dealt to it.
void OwnerOptimizer::finish_step(ProgramBuilder& b) {
  if (b.phase() == Phase::kOptimizer) {
    for (int owner = 0; owner < context_.mesh.size(Axis::kData); ++owner) {
      for (const std::int32_t parameter : dealt_) {
        if (owner_[index(parameter)] == owner) {
          const View all = b.whole(weight_[index(parameter)]);
          b.collective(Collective::kBroadcast,
                       b.tables().communicator(kDataAxes),
                       Reduction::kNone,
                       all.elements,
                       all,
                       all,
                       {.stream = Stream::kData, .root = static_cast<std::int16_t>(owner)});
        }
      }
    }
  }
  Ddp::finish_step(b);
}

}  // namespace lockstep
