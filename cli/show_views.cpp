#include "cli/show_views.h"

#include "core/planner/planner.h"
#include "core/strategy_words.h"
#include "core/trace_index.h"
#include "simulator/compare.h"
#include "simulator/parallel.h"
#include "visualizer/models/buckets_text.h"
#include "visualizer/models/budget_text.h"
#include "visualizer/models/collective_steps_text.h"
#include "visualizer/models/comparison_text.h"
#include "visualizer/models/memory_stack_text.h"
#include "visualizer/models/pipeline_grid_text.h"
#include "visualizer/models/shards_text.h"
#include "visualizer/models/timeline_svg.h"
#include "visualizer/models/timeline_text.h"
#include "visualizer/models/view_json.h"

namespace lockstep::cli {
namespace {

constexpr int kMostRanks = 16;

/// Views of one rank show the first that is asked for.
int one_rank(const ShowInput& input) {
  return input.ranks.empty() ? 0 : input.ranks.front();
}

std::optional<Nanoseconds> moment(const ShowInput& input) {
  return input.at ? std::optional(input.step().begin + *input.at) : std::nullopt;
}

std::string timeline(const ShowInput& input) {
  view::TimelineTextOptions options;
  options.width = input.text.width;
  options.colour = input.colour;
  options.utf8 = input.text.utf8;
  options.ranks = input.ranks;
  options.path = true;
  return view::timeline_text(input.plan(), input.step(), options);
}

view::Timeline make_timeline(const ShowInput& input) {
  return {input.plan(),
          input.step(),
          input.ranks.empty() ? view::usual_ranks(input.step(), kMostRanks) : input.ranks};
}

void timeline_json(JsonWriter& json, const ShowInput& input) {
  write_timeline(json, make_timeline(input));
}

view::Buckets make_buckets(const ShowInput& input) {
  const TraceIndex index(input.plan(), input.step());
  return {index, one_rank(input), &input.scenario().strategy.data};
}

std::string buckets(const ShowInput& input) {
  return view::buckets_text(make_buckets(input), moment(input), input.text);
}

void buckets_json(JsonWriter& json, const ShowInput& input) {
  write_buckets(json, make_buckets(input), input.at);
}

std::string memory(const ShowInput& input) {
  const TraceIndex index(input.plan(), input.step());
  const view::MemoryStack stack(index, one_rank(input));
  return view::memory_stack_text(stack, moment(input), input.text);
}

void memory_json(JsonWriter& json, const ShowInput& input) {
  const TraceIndex index(input.plan(), input.step());
  write_memory_stack(json, view::MemoryStack(index, one_rank(input)), input.at);
}

std::string shards(const ShowInput& input) {
  const TraceIndex index(input.plan(), input.step());
  const int rank = one_rank(input);
  return view::shards_text(
      view::Shards(index, rank), view::MemoryStack(index, rank), moment(input), input.text);
}

void shards_json(JsonWriter& json, const ShowInput& input) {
  const TraceIndex index(input.plan(), input.step());
  write_shards(json, view::Shards(index, one_rank(input)), input.at);
}

/// The usual strategies on the devices of the scenario.
std::vector<StrategyOutcome> outcomes(const ShowInput& input) {
  const std::int64_t devices = input.scenario().strategy.world_size() > 1
                                   ? input.scenario().strategy.world_size()
                                   : input.scenario().cluster.devices();
  const Scenario base = with_shared_batch(input.scenario(), devices);
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

std::string pipeline(const ShowInput& input) {
  view::PipelineTextOptions options;
  options.width = input.text.width;
  options.utf8 = input.text.utf8;
  options.rank = one_rank(input);
  return view::pipeline_text(input.scenario(), input.plan(), input.step(), options);
}

void pipeline_json(JsonWriter& json, const ShowInput& input) {
  write_pipeline(
      json,
      view::pipeline_grid(input.scenario(), input.plan(), input.step(), one_rank(input)),
      view::pipeline_grid(compute_only(pipeline_schedule(input.scenario())), UnitCosts{}),
      view::bubble_formula(input.scenario()));
}

std::string steps(const ShowInput& input) {
  return view::collective_steps_text(view::CollectiveSteps(*input.record),
                                     {.utf8 = input.text.utf8});
}

void steps_json(JsonWriter& json, const ShowInput& input) {
  write_collective(json, view::CollectiveSteps(*input.record));
}

view::Comparison make_comparison(const ShowInput& input) {
  const ShownStep& a = input.steps[0];
  const ShownStep& b = input.steps[1];
  return {{a.plan, a.step}, {b.plan, b.step}};
}

std::string compare(const ShowInput& input) {
  view::ComparisonTextOptions options;
  options.a_name = "A " + input.steps[0].name;
  options.b_name = "B " + input.steps[1].name;
  options.utf8 = input.text.utf8;
  return view::comparison_text(make_comparison(input), options);
}

void compare_json(JsonWriter& json, const ShowInput& input) {
  json.field("a", input.steps[0].name);
  json.field("b", input.steps[1].name);
  write_comparison(json, make_comparison(input));
}

constexpr ShownView kViews[] = {
    {"timeline", "ranks and streams over time", Source::kStep, timeline, timeline_json},
    {"buckets",
     "gradients dropping into buckets that are reduced",
     Source::kStep,
     buckets,
     buckets_json},
    {"shards",
     "units of parameters gathered, used and cut again",
     Source::kStep,
     shards,
     shards_json},
    {"pipeline",
     "stages and micro-batches, activations in flight, bubble",
     Source::kStep,
     pipeline,
     pipeline_json},
    {"memory",
     "bytes over time by category, and what is alive",
     Source::kStep,
     memory,
     memory_json},
    {"budget",
     "usual strategies side by side: what fits, and what it holds",
     Source::kStep,
     budget,
     budget_json},
    {"steps",
     "moves of a collective one by one, of a file of `lockstep collective --out`",
     Source::kRecord,
     steps,
     steps_json},
    {"compare",
     "two trace files or run folders: where the time went in each",
     Source::kTwoSteps,
     compare,
     compare_json},
};

}  // namespace

std::span<const ShownView> shown_views() {
  return kViews;
}

std::string timeline_picture(const ShowInput& input) {
  return view::timeline_svg(make_timeline(input));
}

}  // namespace lockstep::cli
