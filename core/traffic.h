// Traffic: what one program sends: messages by group and kind, with bytes.
//
// Bytes on the wire are those of ring algorithms (NCCL docs; nccl-tests doc/PERFORMANCE.md): of n
// members each sends 2 (n-1)/n of an all-reduced tensor, (n-1)/n of an all-gathered or
// reduce-scattered one. Where the share differs by rank (a root and others) only the mean over the
// members is known without the algorithm: a tree or a chain moves n-1 copies, (n-1)/n each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.h"

namespace lockstep {

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
  /// Bytes that this rank sends. Zero for a recv and for kinds whose share differs by rank.
  double sent = 0;
  /// The same as a mean over the group's members, so that rooted kinds have one too.
  double mean_sent = 0;
};

/// Collectives, sends and receives.
bool is_communication(const Operation& op);

/// "all_reduce", "send"; of other operations the kind's name.
std::string kind_text(const Operation& op);

/// Members of any group of this kind.
std::int64_t group_size(const Mesh& mesh, const Communicator& group);

/// Bytes of the operation's whole tensor, in a group of `members`.
std::int64_t tensor_bytes(const Operation& op, std::int64_t members);

/// Traffic::mean_sent of one operation.
double mean_sent_bytes(const Operation& op, std::int64_t members);

/// In the order of the first message.
std::vector<Traffic> traffic_of(const Plan& plan, const Program& program);

}  // namespace lockstep
