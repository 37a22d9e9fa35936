// Two steps side by side, against durations that were put in by hand.
#include "core/run_comparison.h"

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/planner/planner.h"
#include "core/queues.h"
#include "tests/support/catch.h"

namespace lockstep {
namespace {

Plan two_rank_plan() {
  Scenario scenario;
  set_key(scenario, "model", "gpt2-tiny");
  scenario.training.precision = Precision::kFp32;
  scenario.strategy.data.degree = 3;
  return make_plan(resolved(scenario), {.evaluate = false, .save = false});
}

/// Every operation of every rank takes `duration`, one after the other.
TraceStep steady(const Plan& plan, Nanoseconds duration) {
  TraceStep step;
  step.section = static_cast<std::int32_t>(
      &plan.step(static_cast<int>(plan.variant_of_iteration.size()) - 1) - plan.sections.data());
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    TraceTrack track;
    track.class_index = plan.class_of_rank(rank);
    track.ranks = {rank};
    const Program& program = plan.sections[static_cast<std::size_t>(step.section)]
                                 .programs[static_cast<std::size_t>(track.class_index)];
    Nanoseconds now = 0;
    for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
      if (takes_place(program.operations[i])) {
        track.spans.push_back({i, SpanState::kDone, now, now, now, now + duration});
        now += duration;
      }
    }
    step.end = std::max(step.end, now);
    step.track_of_rank.push_back(rank);
    step.tracks.push_back(std::move(track));
  }
  return step;
}

TEST_CASE("a comparison has every operation of every rank with both its times") {
  const Plan plan = two_rank_plan();
  const TraceStep predicted = steady(plan, 3000);
  const std::vector<TraceStep> measured{steady(plan, 9000), steady(plan, 1000), steady(plan, 2000)};
  const RunComparison it = compare_run(plan, predicted, measured);
  std::size_t spans = 0;
  for (const TraceTrack& track : predicted.tracks) {
    spans += track.spans.size();
  }
  REQUIRE(it.operations.size() == spans);
  for (const OperationTimes& times : it.operations) {
    CHECK(times.predicted_s == Approx(3e-6));
    CHECK(times.measured_s == Approx(2e-6));  // the median of 9, 1 and 2
  }
  CHECK(it.error() == Approx(0.5));
}

TEST_CASE("families and kinds each add up to a rank's mean of all operations") {
  const Plan plan = two_rank_plan();
  const TraceStep predicted = steady(plan, 1000);
  const std::vector<TraceStep> measured{steady(plan, 4000)};
  const RunComparison it = compare_run(plan, predicted, measured);
  for (const std::vector<TimesSum>* sums : {&it.families, &it.kinds}) {
    double operations = 0;
    double seconds = 0;
    for (const TimesSum& sum : *sums) {
      operations += sum.operations;
      seconds += sum.measured_s;
    }
    CHECK(operations * 3 == Approx(static_cast<double>(it.operations.size())));
    CHECK(seconds == Approx(operations * 4e-6));
  }
}

TEST_CASE("an operation that was skipped on either side is not compared") {
  const Plan plan = two_rank_plan();
  TraceStep predicted = steady(plan, 1000);
  std::vector<TraceStep> measured{steady(plan, 1000)};
  const std::size_t all = compare_run(plan, predicted, measured).operations.size();
  predicted.tracks[0].spans[4].state = SpanState::kSkipped;
  measured[0].tracks[1].spans[5].state = SpanState::kSkipped;
  CHECK(compare_run(plan, predicted, measured).operations.size() == all - 2);
}

TEST_CASE("steps that do not fit the plan or each other are refused") {
  const Plan plan = two_rank_plan();
  const TraceStep step = steady(plan, 1000);
  CHECK_THROWS_AS(compare_run(plan, step, {}), BadInputError);
  std::vector<TraceStep> cut{step};
  cut[0].tracks[0].spans.pop_back();
  CHECK_THROWS_AS(compare_run(plan, step, cut), BadInputError);
}

}  // namespace
}  // namespace lockstep
