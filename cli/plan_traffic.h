// What one program sends: messages by group and kind, with bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"

namespace lockstep::cli {

/// Messages of one kind over one group, of one rank.
struct Traffic {
  std::string group;  ///< "dp", "pp+tp"
  std::string kind;   ///< "all_reduce", "send"
  std::string dtype;
  bool control = false;
  std::int64_t messages = 0;
  /// Bytes of the whole tensors: of an all-gather, what it gives; of a reduce-scatter, what it
  /// takes.
  std::int64_t bytes = 0;
  /// Bytes that this rank sends with ring algorithms: all-reduce 2 (n-1)/n of the tensor,
  /// all-gather and reduce-scatter (n-1)/n (NCCL docs, nccl-tests doc/PERFORMANCE.md), send all of
  /// it, receive nothing. Zero for kinds whose share differs by rank (broadcast and the like).
  double sent = 0;
};

/// In the order of the first message.
std::vector<Traffic> traffic_of(const Plan& plan, const Program& program);

}  // namespace lockstep::cli
