// What a plan sets out to do, found by running its initialisation (and, with batch norm, two steps)
// with first values of which every rank has its own.
#include <algorithm>
#include <map>

#include "core/check/value_check.h"

namespace lockstep {
namespace {

using field::Number;

/// Hooks that let everything pass and note where first values end up.
class Scout : public ValueHooks {
 public:
  explicit Scout(const Plan& plan) : plan_(plan) {}

  void problem(const ValueSite&, std::string) override {}
  bool enough() const override { return false; }
  Number initial(const ValueSite& site, std::int32_t parameter) override {
    return own(site.rank, static_cast<std::size_t>(parameter), false);
  }
  Number initial_statistics(const ValueSite& site, std::uint32_t buffer) override {
    return own(site.rank, buffer, true);
  }
  void step(const ValueSite&, ValueStep&) override {}
  Number square(const ValueSite&, const ValuePiece&) override { return 1; }
  Number clip(const ValueSite&, Number) override { return 1; }
  Number look(const ValueSite&, const ValueSlab&, Number flag) override { return flag; }
  Number merge_flags(Number a, Number) override { return a; }
  void guarded(const ValueSite&, Number) override {}
  void host_reads(const ValueSite&, Number) override {}
  void released(const ValueSite&, const ValueSlab&) override {}
  void shard_written(const ValueSite&, const ValueSlab&) override {}
  void statistics(const ValueSite& site,
                  std::uint32_t buffer,
                  Number before,
                  Number after) override {
    updates_[{site.rank, buffer}].push_back({before, after});
  }

  /// Marks the ranks whose first values are still somewhere.
  void survivors(const ValueMachine& machine, ValueFacts& facts) const {
    const auto ranks = static_cast<std::size_t>(machine.rank_count());
    // Rows of ranks whose values all vanish must be there too.
    for (const auto& [number, source] : sources_) {
      table_of(source, facts)[source.what].resize(ranks, 0);
    }
    for (int rank = 0; rank < machine.rank_count(); ++rank) {
      for (std::size_t root = 0; root < machine.memory(rank).buffer_count(); ++root) {
        for (const ValuePiece& piece : machine.memory(rank).raw(static_cast<std::uint32_t>(root))) {
          const auto found = sources_.find(piece.symbol.number);
          if (found == sources_.end()) {
            continue;
          }
          const Source& source = found->second;
          table_of(source, facts)[source.what][static_cast<std::size_t>(source.rank)] = 1;
        }
      }
    }
  }

  /// Micro-batches of iteration 1 that replicas begin with the statistics of coordinate 0.
  void shared_statistics(std::vector<std::uint8_t>& shares) const {
    const auto count = static_cast<std::size_t>(plan_.microbatches);
    shares.assign(count, 0);
    for (const auto& [place, own] : updates_) {
      int root = plan_.mesh.with(place.first, Axis::kData, 0);
      root = plan_.mesh.with(root, Axis::kDataReplica, 0);
      const auto of_root = updates_.find({root, place.second});
      for (std::size_t m = 0; root != place.first && m < count; ++m) {
        const std::size_t n = count + m;
        const bool known =
            of_root != updates_.end() && n < own.size() && n < of_root->second.size();
        if (known && own[n].before == of_root->second[n - 1].after &&
            own[n].before != own[n - 1].after) {
          shares[m] = 1;
        }
      }
    }
  }

 private:
  struct Source {
    int rank = 0;
    std::size_t what = 0;
    bool statistics = false;
  };
  static std::vector<std::vector<std::uint8_t>>& table_of(const Source& source, ValueFacts& facts) {
    return source.statistics ? facts.first_statistics : facts.first_values;
  }
  struct Update {
    Number before = 0;
    Number after = 0;
  };
  Number own(int rank, std::size_t what, bool statistics) {
    const Number number = field::Hash(0x6f776eULL)
                              .add(static_cast<Number>(rank))
                              .add(what)
                              .add(statistics ? 1 : 0)
                              .number();
    sources_.emplace(number, Source{rank, what, statistics});
    return number;
  }

  const Plan& plan_;
  std::unordered_map<Number, Source> sources_;
  std::map<std::pair<int, std::uint32_t>, std::vector<Update>> updates_;
};

bool step_has(const Plan& plan, Work work) {
  for (const Section& section : plan.sections) {
    for (const Program& program : section.programs) {
      for (const Operation& op : program.operations) {
        if (section.kind == SectionKind::kStep && op.work == work) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

ValueFacts value_facts(const Plan& plan) {
  ValueFacts facts;
  facts.setting.data = plan.mesh.count(kDataAxes);
  facts.setting.microbatches = plan.microbatches;
  facts.setting.clips = step_has(plan, Work::kClipCoefficient);
  facts.setting.by_tokens = step_has(plan, Work::kCountTokens);
  facts.first_values.resize(plan.graph->parameters.size());
  for (const std::vector<Buffer>& buffers : plan.buffers) {
    facts.first_statistics.resize(std::max(facts.first_statistics.size(), buffers.size()));
  }
  Scout scout(plan);
  ValueMachine machine(plan, scout);
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    if (plan.sections[s].kind == SectionKind::kInit) {
      machine.run(static_cast<int>(s), -1);
    }
  }
  scout.survivors(machine, facts);
  if (step_has(plan, Work::kBnApply)) {
    for (int iteration = 0; iteration < 2; ++iteration) {
      machine.run(static_cast<int>(&plan.step(iteration) - plan.sections.data()), iteration);
    }
    scout.shared_statistics(facts.shares_statistics);
  }
  return facts;
}

}  // namespace lockstep
