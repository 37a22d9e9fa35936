// Rule "deadlock": plays every section (progress.h) and, where something is left, prints who waits
// for what until the circle closes.

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/check/progress.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

using Reason = Progress::Reason;
using Wait = Progress::Wait;

/// One line of the report: `where` waits for `wait`.
struct Link {
  ClassOperation where;
  Wait wait;
};

bool is_end(Reason reason) {
  return reason == Reason::kMissingMember || reason == Reason::kMissingPeer ||
         reason == Reason::kNeverLaunched;
}

/// Looks for a circle in the graph of waits by depth-first search from one operation after another.
class CycleSearch {
 public:
  explicit CycleSearch(const Progress& progress) : progress_(progress) {}

  /// The links of a circle, or none; then `ends` holds the waits that nothing can end.
  std::vector<Link> run() {
    for (const ClassOperation& start : progress_.blocked()) {
      if (colour(start) == Colour::kNew && search(start)) {
        return circle_;
      }
    }
    return {};
  }
  const std::vector<Link>& ends() const { return ends_; }

 private:
  enum class Colour : std::uint8_t { kNew, kOpen, kClosed };
  struct Visit {
    ClassOperation where;
    std::vector<Wait> waits;
    std::size_t next = 0;
  };

  Colour& colour(const ClassOperation& where) {
    return colours_[{where.class_index, where.operation}];
  }

  void open(const ClassOperation& where) {
    colour(where) = Colour::kOpen;
    std::vector<Wait> waits = progress_.waits_of(where);
    std::reverse(waits.begin(), waits.end());  // the nearest cause first: shorter circles
    path_.push_back({where, std::move(waits), 0});
  }

  bool search(const ClassOperation& start) {
    open(start);
    while (!path_.empty()) {
      Visit& visit = path_.back();
      if (visit.next == visit.waits.size()) {
        colour(visit.where) = Colour::kClosed;
        path_.pop_back();
        continue;
      }
      const Wait wait = visit.waits[visit.next++];
      if (is_end(wait.reason)) {
        ends_.push_back({visit.where, wait});
      } else if (colour(wait.on) == Colour::kOpen) {
        close(wait.on);
        return true;
      } else if (colour(wait.on) == Colour::kNew) {
        open(wait.on);
      }
    }
    return false;
  }

  /// The circle is the part of the path from `first` on.
  void close(const ClassOperation& first) {
    auto visit = std::find_if(path_.begin(), path_.end(), [&](const Visit& other) {
      return other.where.class_index == first.class_index &&
             other.where.operation == first.operation;
    });
    for (; visit != path_.end(); ++visit) {
      circle_.push_back({visit->where, visit->waits[visit->next - 1]});
    }
  }

  const Progress& progress_;
  std::map<std::pair<int, std::uint32_t>, Colour> colours_;
  std::vector<Visit> path_;
  std::vector<Link> circle_;
  std::vector<Link> ends_;
};

/// Puts links into words, following actual ranks from one to the next.
class CycleText {
 public:
  CycleText(const CheckContext& context, int section) : context_(context), section_(section) {}

  std::string of(const std::vector<Link>& links) const {
    constexpr std::size_t kShown = 16;
    int rank = rank_of_class(context_.plan, links.front().where.class_index);
    std::string text;
    for (std::size_t i = 0; i < links.size(); ++i) {
      const int next = rank_of(links[i], rank);
      if (i < kShown) {
        text += fmt::format(
            "\n  rank {} {} {}", rank, operation(links[i].where), reason(links[i], rank, next));
      }
      rank = next;
    }
    return links.size() <= kShown ? text
                                  : text + fmt::format("\n  and {} more", links.size() - kShown);
  }

 private:
  std::string operation(const ClassOperation& where) const {
    const Operation& op = context_.program(section_, where.class_index).operations[where.operation];
    return fmt::format(
        "#{} {}", where.operation, operation_text(context_.plan, where.class_index, op));
  }

  /// The rank that a link leads to, from a rank of its own class.
  int rank_of(const Link& link, int rank) const {
    const Plan& plan = context_.plan;
    const Operation& op =
        context_.program(section_, link.where.class_index).operations[link.where.operation];
    switch (link.wait.reason) {
      case Reason::kMember:
      case Reason::kMissingMember:
        return rank_in_group(
            plan, plan.communicators[op.communicator], rank, link.wait.on.class_index);
      case Reason::kPeer:
      case Reason::kMissingPeer:
        return plan.mesh.with(rank, Axis::kPipeline, op.peer);
      default:
        return rank;
    }
  }

  std::string reason(const Link& link, int rank, int next) const {
    const std::string on = fmt::format("#{}", link.wait.on.operation);
    const Operation& op =
        context_.program(section_, link.where.class_index).operations[link.where.operation];
    switch (link.wait.reason) {
      case Reason::kHost:
        return fmt::format("is not issued: the host of rank {} waits for {}", rank, on);
      case Reason::kStream:
        return fmt::format("is behind {} on stream {}", on, name_of(op.stream));
      case Reason::kQueue:
        return fmt::format("is behind {} on communicator {}", on, communicator_of(op));
      case Reason::kDependency:
        return fmt::format("waits for its dependency {}", on);
      case Reason::kMember:
        return fmt::format("waits for rank {}'s {}", next, on);
      case Reason::kPeer:
        return fmt::format("waits for rank {}'s {}",
                           next,
                           op.kind == OperationKind::kSend ? "recv " + on : "send " + on);
      case Reason::kMissingMember:
        return fmt::format("waits for rank {}, which has no such collective left", next);
      case Reason::kMissingPeer:
        return fmt::format("waits for rank {}, which has no such message", next);
      case Reason::kNeverLaunched:
        return fmt::format("waits for {}, which never launches", on);
    }
    return {};
  }

  std::string communicator_of(const Operation& op) const {
    return group_text(context_.plan.communicators[op.communicator]);
  }

  const CheckContext& context_;
  int section_;
};

}  // namespace

void check_progress(const CheckContext& context, int section, const MessagePartners& partners) {
  Progress progress(context, section, partners);
  progress.run();
  CycleSearch search(progress);
  std::vector<Link> links = search.run();
  if (links.empty()) {
    // No circle: somebody waits for what nobody does. A missing collective or message is already
    // reported as such, by its own rule.
    const auto own = std::find_if(search.ends().begin(), search.ends().end(), [](const Link& end) {
      return end.wait.reason == Reason::kNeverLaunched;
    });
    if (own != search.ends().end()) {
      links.push_back(*own);
    } else if (!search.ends().empty() && context.problems.count(PlanRule::kSequence) == 0 &&
               context.problems.count(PlanRule::kMessage) == 0) {
      links.push_back(search.ends().front());
    } else {
      return;
    }
  }
  context.problems.add({PlanRule::kDeadlock,
                        fmt::format("{} cannot go on:{}",
                                    section_text(context.plan, section),
                                    CycleText(context, section).of(links)),
                        links.front().where.class_index,
                        section,
                        links.front().where.operation});
}

}  // namespace lockstep
