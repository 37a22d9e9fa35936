#include "simulator/rank_classes.h"

#include <algorithm>
#include <map>
#include <set>

namespace lockstep::sim {
namespace {

using Signature = std::vector<std::int32_t>;

/// Numbers for values, in the order in which they are first asked for.
template <typename Value>
class Interner {
 public:
  std::int32_t number(const Value& value) {
    return numbers_.try_emplace(value, static_cast<std::int32_t>(numbers_.size())).first->second;
  }
  std::size_t size() const { return numbers_.size(); }

 private:
  std::map<Value, std::int32_t> numbers_;
};

/// What is special about one rank.
struct Perturbation {
  double compute = 1;
  double skew = 1;
  double link = 1;
  bool failed = false;
  auto operator<=>(const Perturbation&) const = default;
};

class Classifier {
 public:
  Classifier(const Plan& plan, const ClusterSpec& cluster, const WhatIf& what_if, bool fold)
      : plan_(plan),
        cluster_(cluster),
        ranks_(plan.mesh.world_size()),
        fold_(fold && !what_if.differs_by_rank() && !plan.host_shared) {
    perturb(what_if);
    find_peers();
    find_groups();
  }

  RankClasses classify() {
    colour_by_place();
    if (fold_) {
      while (refine()) {
      }
    }
    return collect();
  }

 private:
  std::size_t at(int index) const { return static_cast<std::size_t>(index); }

  void perturb(const WhatIf& what_if) {
    special_.resize(at(ranks_));
    for (const RankFactor& each : what_if.slow_ranks) {
      special_[at(each.rank)].compute *= each.factor;
    }
    for (const RankFactor& each : what_if.skewed) {
      special_[at(each.rank)].skew *= each.factor;
    }
    for (const RankFactor& each : what_if.slow_links) {
      special_[at(each.rank)].link *= each.factor;
    }
    if (what_if.failed) {
      special_[at(what_if.failed->rank)].failed = true;
    }
  }

  /// Pipeline coordinates that each plan class sends to or receives from.
  void find_peers() {
    peers_.resize(at(plan_.class_count()));
    for (const Section& section : plan_.sections) {
      for (std::size_t index = 0; index < section.programs.size(); ++index) {
        for (const Operation& op : section.programs[index].operations) {
          if (op.peer != kNoPeer) {
            peers_[index].insert(op.peer);
          }
        }
      }
    }
  }

  std::int32_t place(const std::vector<int>& ranks) {
    GroupPlacement placement = placement_of(cluster_, ranks);
    for (const int rank : ranks) {
      placement.slowdown = std::max(placement.slowdown, special_[at(rank)].link);
    }
    const std::int32_t number = placement_numbers_.number(placement);
    if (at(number) == placements_.size()) {
      placements_.push_back(placement);
    }
    return number;
  }

  void find_groups() {
    const std::size_t communicators = plan_.communicators.size();
    group_of_.assign(communicators, Signature(at(ranks_), -1));
    for (std::size_t index = 0; index < communicators; ++index) {
      const Communicator& communicator = plan_.communicators[index];
      for (int rank = 0; rank < ranks_; ++rank) {
        if (plan_.mesh.index(communicator.axes, rank) != 0) {
          continue;  // not the first of its group
        }
        std::vector<int> group = members(plan_, communicator, rank);
        if (group.empty()) {
          continue;
        }
        for (const int member : group) {
          group_of_[index][at(member)] = static_cast<std::int32_t>(members_.size());
        }
        group_placement_.push_back(place(group));
        group_communicator_.push_back(static_cast<std::int32_t>(index));
        members_.push_back(std::move(group));
      }
    }
  }

  int peer_of(int rank, int coordinate) const {
    return plan_.mesh.with(rank, Axis::kPipeline, coordinate);
  }

  const std::set<int>& peers_of(int rank) const { return peers_[at(plan_.class_of_rank(rank))]; }

  /// The first colours: program, perturbation, and how the rank's groups and peers lie.
  void colour_by_place() {
    Interner<Perturbation> perturbations;
    Interner<Signature> colours;
    colour_.resize(at(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      Signature signature{plan_.class_of_rank(rank), perturbations.number(special_[at(rank)])};
      if (!fold_) {
        signature.push_back(rank);
      }
      for (const Signature& groups : group_of_) {
        const std::int32_t group = groups[at(rank)];
        signature.push_back(group < 0 ? -1 : group_placement_[at(group)]);
      }
      for (const int peer : peers_of(rank)) {
        signature.push_back(pair_placement(rank, peer));
      }
      colour_[at(rank)] = colours.number(signature);
    }
    colours_ = colours.size();
  }

  std::int32_t pair_placement(int rank, int coordinate) {
    const int peer = peer_of(rank, coordinate);
    return place({std::min(rank, peer), std::max(rank, peer)});
  }

  /// Splits colours whose groups or peers differ in colour. False when there were none.
  bool refine() {
    Interner<Signature> group_colours;
    Signature colour_of_group(members_.size());
    Signature sorted;
    for (std::size_t group = 0; group < members_.size(); ++group) {
      sorted.clear();
      for (const int member : members_[group]) {
        sorted.push_back(colour_[at(member)]);
      }
      std::sort(sorted.begin(), sorted.end());
      colour_of_group[group] = group_colours.number(sorted);
    }
    Interner<Signature> colours;
    Signature next(at(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      Signature signature{colour_[at(rank)]};
      for (const Signature& groups : group_of_) {
        const std::int32_t group = groups[at(rank)];
        signature.push_back(group < 0 ? -1 : colour_of_group[at(group)]);
      }
      for (const int peer : peers_of(rank)) {
        signature.push_back(colour_[at(peer_of(rank, peer))]);
      }
      next[at(rank)] = colours.number(signature);
    }
    const bool split = colours.size() > colours_;
    colours_ = colours.size();
    colour_ = std::move(next);
    return split;
  }

  RankClasses collect() {
    RankClasses result;
    result.class_of_rank.assign(at(ranks_), -1);
    Interner<std::int32_t> order;  // colours by their first rank
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::int32_t number = order.number(colour_[at(rank)]);
      if (at(number) == result.classes.size()) {
        RankClass& added = result.classes.emplace_back();
        added.plan_class = plan_.class_of_rank(rank);
        added.compute_factor = special_[at(rank)].compute;
        added.skew = special_[at(rank)].skew;
      }
      result.class_of_rank[at(rank)] = number;
      result.classes[at(number)].ranks.push_back(rank);
    }
    std::map<std::pair<std::int32_t, Signature>, std::int32_t> known;
    for (RankClass& each : result.classes) {
      for (const Signature& groups : group_of_) {
        const std::int32_t group = groups[at(each.ranks.front())];
        each.groups.push_back(group < 0 ? -1 : instance(group, known, result));
      }
      add_peers(each, result);
    }
    result.placements = placements_;
    return result;
  }

  std::int32_t instance(std::int32_t group,
                        std::map<std::pair<std::int32_t, Signature>, std::int32_t>& known,
                        RankClasses& result) const {
    GroupInstance found;
    found.communicator = group_communicator_[at(group)];
    found.placement = group_placement_[at(group)];
    found.ranks = members_[at(group)];
    for (const int member : members_[at(group)]) {
      found.classes.push_back(result.class_of_rank[at(member)]);
    }
    std::sort(found.classes.begin(), found.classes.end());
    found.classes.erase(std::unique(found.classes.begin(), found.classes.end()),
                        found.classes.end());
    const auto [entry, added] = known.try_emplace({found.communicator, found.classes},
                                                  static_cast<std::int32_t>(result.groups.size()));
    if (added) {
      result.groups.push_back(std::move(found));
    }
    return entry->second;
  }

  void add_peers(RankClass& each, const RankClasses& result) {
    const int stages = plan_.mesh.size(Axis::kPipeline);
    each.peers.assign(at(stages), -1);
    each.peer_placements.assign(at(stages), -1);
    const int rank = each.ranks.front();
    for (const int peer : peers_of(rank)) {
      each.peers[at(peer)] = result.class_of_rank[at(peer_of(rank, peer))];
      each.peer_placements[at(peer)] = pair_placement(rank, peer);
    }
  }

  const Plan& plan_;
  const ClusterSpec& cluster_;
  int ranks_;
  bool fold_;
  std::vector<Perturbation> special_;      ///< by rank
  std::vector<std::set<int>> peers_;       ///< by plan class
  std::vector<std::vector<int>> members_;  ///< by group
  std::vector<std::int32_t> group_placement_;
  std::vector<std::int32_t> group_communicator_;
  std::vector<Signature> group_of_;  ///< by communicator and rank
  Interner<GroupPlacement> placement_numbers_;
  std::vector<GroupPlacement> placements_;
  Signature colour_;  ///< by rank
  std::size_t colours_ = 0;
};

}  // namespace

RankClasses classify(const Plan& plan,
                     const ClusterSpec& cluster,
                     const WhatIf& what_if,
                     bool fold) {
  return Classifier(plan, cluster, what_if, fold).classify();
}

}  // namespace lockstep::sim
