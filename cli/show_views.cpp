#include "cli/show_views.h"

#include "cli/show_json.h"
#include "core/strategy_words.h"
#include "core/trace_index.h"
#include "simulator/compare.h"
#include "simulator/parallel.h"
#include "visualizer/models/buckets_text.h"
#include "visualizer/models/budget_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/models/shards_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::cli {
namespace {

constexpr int kMostRanks = 16;

/// Views of one rank show the first that is asked for.
int one_rank(const ShowInput& input) {
  return input.ranks.empty() ? 0 : input.ranks.front();
}

std::optional<Nanoseconds> moment(const ShowInput& input) {
  return input.at ? std::optional(input.step.begin + *input.at) : std::nullopt;
}

std::string timeline(const ShowInput& input) {
  view::TimelineTextOptions options;
  options.width = input.text.width;
  options.colour = input.colour;
  options.utf8 = input.text.utf8;
  options.ranks = input.ranks;
  return view::timeline_text(input.plan, input.step, options);
}

void timeline_json(JsonWriter& json, const ShowInput& input) {
  const std::vector<int> ranks =
      input.ranks.empty() ? view::usual_ranks(input.step, kMostRanks) : input.ranks;
  write_timeline(json, view::Timeline(input.plan, input.step, ranks));
}

view::Buckets make_buckets(const ShowInput& input) {
  const TraceIndex index(input.plan, input.step);
  return {index, one_rank(input), &input.scenario.strategy.data};
}

std::string buckets(const ShowInput& input) {
  return view::buckets_text(make_buckets(input), moment(input), input.text);
}

void buckets_json(JsonWriter& json, const ShowInput& input) {
  write_buckets(json, make_buckets(input), input.at);
}

std::string memory(const ShowInput& input) {
  const TraceIndex index(input.plan, input.step);
  const view::MemoryStack stack(index, one_rank(input));
  return view::memory_stack_text(stack, moment(input), input.text);
}

void memory_json(JsonWriter& json, const ShowInput& input) {
  const TraceIndex index(input.plan, input.step);
  write_memory_stack(json, view::MemoryStack(index, one_rank(input)), input.at);
}

std::string shards(const ShowInput& input) {
  const TraceIndex index(input.plan, input.step);
  const int rank = one_rank(input);
  return view::shards_text(
      view::Shards(index, rank), view::MemoryStack(index, rank), moment(input), input.text);
}

void shards_json(JsonWriter& json, const ShowInput& input) {
  const TraceIndex index(input.plan, input.step);
  write_shards(json, view::Shards(index, one_rank(input)), input.at);
}

/// The usual strategies on the devices of the scenario.
std::vector<StrategyOutcome> outcomes(const ShowInput& input) {
  const std::int64_t devices = input.scenario.strategy.world_size() > 1
                                   ? input.scenario.strategy.world_size()
                                   : input.scenario.cluster.devices();
  const Scenario base = with_shared_batch(input.scenario, devices);
  const std::vector<std::string> words = usual_strategies(base, devices);
  std::vector<StrategyOutcome> all(words.size());
  sim::for_all(words.size(), sim::thread_count(0, words.size()), [&](int, std::size_t i) {
    all[i] = sim::compare(words[i], with_strategy(base, words[i], devices), true);
  });
  return all;
}

std::string budget(const ShowInput& input) {
  const std::vector<StrategyOutcome> all = outcomes(input);
  return view::budget_text(view::Budget(all), input.text);
}

void budget_json(JsonWriter& json, const ShowInput& input) {
  const std::vector<StrategyOutcome> all = outcomes(input);
  write_budget(json, view::Budget(all));
}

constexpr ShownView kViews[] = {
    {"timeline", "ranks and streams over time", timeline, timeline_json},
    {"buckets", "gradients dropping into buckets that are reduced", buckets, buckets_json},
    {"shards", "units of parameters gathered, used and cut again", shards, shards_json},
    {"memory", "bytes over time by category, and what is alive", memory, memory_json},
    {"budget", "usual strategies side by side: what fits, and what it holds", budget, budget_json},
};

}  // namespace

std::span<const ShownView> shown_views() {
  return kViews;
}

}  // namespace lockstep::cli
