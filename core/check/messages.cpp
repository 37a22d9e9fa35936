// Rule "message": every send has its recv. The two are one message when source, destination and tag
// are the same; a tag is used once per section and direction.

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

/// One end of a message, sorted so that the ends of one message are neighbours, send first.
struct MessageEnd {
  int source = 0;
  int destination = 0;
  std::uint32_t tag = 0;
  bool receives = false;
  std::uint32_t operation = 0;

  ClassOperation place() const { return {receives ? destination : source, operation}; }
  bool same_message(const MessageEnd& other) const {
    return source == other.source && destination == other.destination && tag == other.tag;
  }
  bool operator<(const MessageEnd& other) const {
    return std::tie(source, destination, tag, receives, operation) <
           std::tie(other.source, other.destination, other.tag, other.receives, other.operation);
  }
};

std::vector<MessageEnd> ends_of(const CheckContext& context, int section) {
  std::vector<MessageEnd> ends;
  for (int index = 0; index < context.plan.class_count(); ++index) {
    const Program& program = context.program(section, index);
    for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
      const Operation& op = program.operations[i];
      if (op.kind != OperationKind::kSend && op.kind != OperationKind::kRecv) {
        continue;
      }
      const int peer = class_at_stage(context.plan, index, op.peer);
      const bool receives = op.kind == OperationKind::kRecv;
      ends.push_back({receives ? peer : index, receives ? index : peer, op.tag, receives, i});
    }
  }
  std::sort(ends.begin(), ends.end());
  return ends;
}

class MessageMatch {
 public:
  MessageMatch(const CheckContext& context, int section) : context_(context), section_(section) {
    partners_.resize(static_cast<std::size_t>(context.plan.class_count()));
  }

  MessagePartners run() {
    const std::vector<MessageEnd> ends = ends_of(context_, section_);
    for (std::size_t begin = 0; begin < ends.size();) {
      std::size_t end = begin + 1;
      while (end < ends.size() && ends[end].same_message(ends[begin])) {
        ++end;
      }
      match({ends.data() + begin, end - begin});
      begin = end;
    }
    for (std::vector<MessagePartner>& of_class : partners_) {
      std::sort(of_class.begin(), of_class.end(), [](const auto& a, const auto& b) {
        return a.operation < b.operation;
      });
    }
    return std::move(partners_);
  }

 private:
  /// The ends of one message: one send and one recv, else it is reported.
  void match(std::span<const MessageEnd> ends) {
    for (std::size_t i = 1; i < ends.size(); ++i) {
      if (ends[i].receives == ends[i - 1].receives) {
        report(ends[i],
               fmt::format("the message was {} before, by #{}",
                           ends[i].receives ? "received" : "sent",
                           ends[i - 1].operation));
      }
    }
    const MessageEnd& send = ends.front();
    const MessageEnd& recv = ends.back();
    if (send.receives == recv.receives) {
      const int peer = rank_of_class(context_.plan, send.receives ? send.source : send.destination);
      report(send, fmt::format("rank {} never {} it", peer, send.receives ? "sends" : "receives"));
      return;
    }
    pair(send, recv);
  }

  void pair(const MessageEnd& send, const MessageEnd& recv) {
    partners_[static_cast<std::size_t>(send.source)].push_back({send.operation, recv.place()});
    partners_[static_cast<std::size_t>(recv.destination)].push_back({recv.operation, send.place()});
    const Operation& from = operation(send);
    const Operation& to = operation(recv);
    if (from.elements != to.elements || from.dtype != to.dtype) {
      report(recv,
             fmt::format("rank {} sends {} {}",
                         rank_of_class(context_.plan, send.source),
                         from.elements,
                         name_of(from.dtype)));
    }
    if (from.communicator != to.communicator) {
      report(recv, "the send is on another communicator");
    }
  }

  const Operation& operation(const MessageEnd& end) const {
    return context_.program(section_, end.place().class_index).operations[end.operation];
  }

  void report(const MessageEnd& end, const std::string& message) const {
    context_.report(
        PlanRule::kMessage,
        section_,
        end.place(),
        fmt::format("rank {}: {}", rank_of_class(context_.plan, end.place().class_index), message));
  }

  const CheckContext& context_;
  int section_;
  MessagePartners partners_;
};

}  // namespace

MessagePartners check_messages(const CheckContext& context, int section) {
  return MessageMatch(context, section).run();
}

}  // namespace lockstep
