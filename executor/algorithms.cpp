#include "executor/algorithms.h"

#include <cstring>

#include "executor/reduce.h"

namespace lockstep::exec {

Algorithm algorithm_for(const Transfer& transfer, Algorithm requested) {
  const Collective kind = transfer.collective;
  const bool ring = kind == Collective::kAllReduce || kind == Collective::kReduceScatter ||
                    kind == Collective::kAllGather;
  const bool tree = kind == Collective::kAllReduce || kind == Collective::kReduce ||
                    kind == Collective::kBroadcast;
  if ((requested == Algorithm::kRing && ring) || (requested == Algorithm::kTree && tree)) {
    return requested;
  }
  return Algorithm::kDirect;
}

void run_alone(const Transfer& transfer) {
  // A mean of one is itself, and so is everything else.
  if (transfer.in != transfer.out && transfer.in != nullptr && transfer.out != nullptr) {
    std::memmove(transfer.out,
                 transfer.in,
                 static_cast<std::size_t>(transfer.elements * size_of(transfer.dtype)));
  }
}

}  // namespace lockstep::exec
