#include "core/planner/schedule/unit_time.h"

#include <algorithm>
#include <random>

#include "core/error.h"
#include "core/planner/schedule/communication.h"
#include "core/planner/schedule/dependency.h"
#include "tests/core/planner/schedule/schedule_support.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using test::describe;
using test::legal_requests;
using Peaks = std::vector<std::int32_t>;

struct KnownTime {
  ScheduleRequest request;
  double makespan;
  double bubble;  ///< as printed, rounded
  Peaks peaks;
};

// Semantics, section 8.3: measured with PyTorch's generators and an event simulation outside of
// this repository. F = I = W = 1 per rank and micro-batch.
TEST_CASE("makespan, bubble and live chunks are those of the reference table") {
  using K = ScheduleKind;
  const Peaks eight(4, 8);
  const std::vector<KnownTime> table = {
      {{K::kGPipe, 2, 1, 4}, 15, .200, {4, 4}},
      {{K::k1F1B, 2, 1, 4}, 15, .200, {2, 1}},
      {{K::kInterleaved, 2, 2, 4}, 13.5, .111, {5, 3}},
      {{K::kLoopedBfs, 2, 2, 4}, 13.5, .111, {8, 8}},
      {{K::kInterleavedZb, 2, 2, 4}, 12.5, .040, {4, 4}},
      {{K::kZbV, 2, 2, 4}, 12.5, .040, {4, 4}},
      {{K::kGPipe, 4, 1, 8}, 33, .2727, eight},
      {{K::k1F1B, 4, 1, 8}, 33, .2727, {4, 3, 2, 1}},
      {{K::kInterleaved, 4, 2, 8}, 28.5, .1579, {11, 9, 7, 5}},
      {{K::kLoopedBfs, 4, 2, 8}, 28.5, .1579, Peaks(4, 16)},
      {{K::kInterleavedZb, 4, 2, 8}, 25.5, .0588, eight},
      {{K::kZbV, 4, 2, 8}, 25.5, .0588, eight},
      {{K::kGPipe, 4, 1, 16}, 57, .1579, Peaks(4, 16)},
      {{K::k1F1B, 4, 1, 16}, 57, .1579, {4, 3, 2, 1}},
      {{K::kInterleaved, 4, 2, 16}, 52.5, .0857, {11, 9, 7, 5}},
      {{K::kLoopedBfs, 4, 2, 16}, 52.5, .0857, Peaks(4, 32)},
      {{K::kInterleavedZb, 4, 2, 16}, 49.5, .0303, eight},
      {{K::kZbV, 4, 2, 16}, 49.5, .0303, eight},
      {{K::kZbH1, 4, 1, 8}, 27, .1111, Peaks(4, 4)},
      {{K::kZbH1, 8, 1, 32}, 103, 7.0 / 103, Peaks(8, 8)},
      // M mod P != 0: PyTorch's equal rounds cost nothing extra.
      {{K::kInterleaved, 4, 2, 6}, 22.5, 4.5 / 22.5, {12, 11, 9, 7}},
      {{K::kInterleaved, 4, 2, 10}, 34.5, 4.5 / 34.5, {12, 10, 8, 6}},
  };
  for (const KnownTime& known : table) {
    INFO(describe(known.request));
    const UnitTime time = time_schedule(make_schedule(known.request));
    CHECK(time.makespan() == known.makespan);
    CHECK(time.bubble_fraction() == Approx(known.bubble).margin(0.0005));
    CHECK(time.peak_live_chunks == known.peaks);
  }
  CHECK_FALSE(problems({K::kInterleaved, 4, 2, 9}).empty());
}

TEST_CASE("times and peaks are those of another simulator on PyTorch's own orders") {
  const std::vector<std::string> lines = test::read_golden("schedule_unit_times.csv").lines;
  REQUIRE(lines.size() > 40);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    INFO(lines[i]);
    const std::vector<std::string> cells = test::split(lines[i], ',');
    REQUIRE(cells.size() == 6);
    for (const ScheduleKind kind : test::all_schedule_kinds()) {
      if (name_of(kind) != cells[0]) {
        continue;
      }
      const UnitTime time = time_schedule(
          make_schedule({kind, std::stoi(cells[1]), std::stoi(cells[2]), std::stoi(cells[3])}));
      CHECK(time.makespan_ticks == std::stoll(cells[4]));
      Peaks peaks;
      for (const std::string& peak : test::split(cells[5], ' ')) {
        peaks.push_back(std::stoi(peak));
      }
      CHECK(time.peak_live_chunks == peaks);
    }
  }
}

std::int64_t ticks(const ScheduleRequest& request, const UnitCosts& costs = {}) {
  return time_schedule(make_schedule(request), costs).makespan_ticks;
}

// Formulas 3B. All in ticks of 1/V, so that the comparison is exact.
TEST_CASE("gpipe and 1f1b take (M + P - 1)(F + B), whatever F and B are") {
  for (const ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::k1F1B}) {
    for (const ScheduleRequest& request : legal_requests(kind, 9, 1, 20)) {
      INFO(describe(request));
      const std::int64_t steps = request.microbatches + request.pipeline_degree - 1;
      CHECK(ticks(request) == steps * 3);
      CHECK(ticks(request, {5, 3, 4}) == steps * 12);
    }
  }
}

TEST_CASE("interleaved and looped-bfs take M(F + B) + (P - 1)(F + B)/V when M >= P") {
  for (const ScheduleKind kind : {ScheduleKind::kInterleaved, ScheduleKind::kLoopedBfs}) {
    for (const ScheduleRequest& request : legal_requests(kind, 8, 4, 17)) {
      INFO(describe(request));
      const std::int64_t p = request.pipeline_degree;
      const std::int64_t v = request.chunks;
      const std::int64_t m = request.microbatches;
      // Fewer micro-batches than ranks: the first one's way through all P V stages dominates.
      CHECK(ticks(request) == (m >= p ? 3 * (m * v + p - 1) : 3 * (p * v + m - 1)));
    }
  }
}

TEST_CASE("the zero-bubble schedules take M(F + B) + (P - 1)F/V when F = I = W") {
  for (const ScheduleKind kind : {ScheduleKind::kZbH1, ScheduleKind::kInterleavedZb}) {
    for (const ScheduleRequest& request : legal_requests(kind, 8, 4, 17)) {
      if (request.microbatches >= request.pipeline_degree) {
        INFO(describe(request));
        CHECK(ticks(request) ==
              3 * request.microbatches * request.chunks + request.pipeline_degree - 1);
      }
    }
  }
  for (const ScheduleRequest& request : legal_requests(ScheduleKind::kZbV, 9, 2, 30)) {
    INFO(describe(request));
    const std::int64_t p = request.pipeline_degree;
    const std::int64_t m = request.microbatches;
    // In half units. Few micro-batches: down and up the V, then I, W and the way back.
    CHECK(ticks(request) == std::max(6 * m + p - 1, 4 * m + 4 * p - 2));
  }
}

TEST_CASE("the bubble of zb-h1 is (P - 1)(F + B - 2W), B with its W, as long as W <= I") {
  const std::vector<UnitCosts> all_costs = {
      {1, 1, 1}, {2, 2, 1}, {3, 3, 2}, {2, 3, 1}, {3, 2, 1}, {4, 4, 1}, {2, 4, 2}};
  for (const UnitCosts& costs : all_costs) {
    for (const ScheduleRequest& request : legal_requests(ScheduleKind::kZbH1, 7, 1, 21)) {
      const std::int64_t p = request.pipeline_degree;
      if (request.microbatches < 2 * p) {
        continue;
      }
      INFO(describe(request) << " W=" << costs.backward_weight);
      const std::int64_t whole = costs.backward_input + costs.backward_weight;
      const std::int64_t busy = request.microbatches * (costs.forward + whole);
      CHECK(ticks(request, costs) - busy ==
            (p - 1) * (costs.forward + whole - 2 * costs.backward_weight));
    }
  }
}

// Formulas 3A, "pipeline in-flight micro-batches"; micro-batches = chunks / V.
TEST_CASE("live chunks follow the in-flight formulas") {
  for (std::int32_t p = 1; p <= 10; ++p) {
    const std::int32_t m = 2 * p;
    const auto peaks = [&](ScheduleKind kind, std::int32_t v) {
      return peak_live_chunks(make_schedule({kind, p, v, m}));
    };
    CHECK(peaks(ScheduleKind::kGPipe, 1) == Peaks(static_cast<std::size_t>(p), m));
    const Peaks falling = peaks(ScheduleKind::k1F1B, 1);
    for (std::int32_t rank = 0; rank < p; ++rank) {
      CHECK(falling[static_cast<std::size_t>(rank)] == p - rank);
    }
    CHECK(peaks(ScheduleKind::kZbH1, 1) == Peaks(static_cast<std::size_t>(p), p));
    CHECK(peaks(ScheduleKind::kZbV, 2) == Peaks(static_cast<std::size_t>(p), 2 * p));
    for (std::int32_t v = 2; v <= 4; ++v) {
      // First rank: p (1 + (p - 1) / (p v)) layer equivalents, that is p v + p - 1 chunks of 1/v.
      CHECK(peaks(ScheduleKind::kInterleaved, v).front() == p * v + p - 1);
    }
  }
}

TEST_CASE("the closed form of live chunks is the count of every schedule") {
  for (const ScheduleKind kind : test::all_schedule_kinds()) {
    for (const ScheduleRequest& request : legal_requests(kind, 9, 3, 21)) {
      const Peaks counted = peak_live_chunks(make_schedule(request));
      for (std::int32_t rank = 0; rank < request.pipeline_degree; ++rank) {
        INFO(describe(request) << " rank " << rank);
        REQUIRE(peak_live_chunks(request, rank) == counted[static_cast<std::size_t>(rank)]);
      }
    }
  }
}

/// Another algorithm for the makespan: sweep over all actions and push their ends later until
/// nothing moves (Bellman-Ford on the longest path), with no order to rely on.
std::int64_t makespan_by_relaxation(const Schedule& schedule, const UnitCosts& costs) {
  struct Node {
    std::size_t rank;
    std::size_t index;
  };
  const auto m = static_cast<std::size_t>(schedule.microbatches);
  const auto key = [m](std::int32_t stage, std::int32_t microbatch) {
    return static_cast<std::size_t>(stage) * m + static_cast<std::size_t>(microbatch);
  };
  const std::size_t cells = static_cast<std::size_t>(schedule.stages()) * m;
  std::vector<Node> forward(cells);
  std::vector<Node> backward(cells);
  std::vector<std::vector<std::int64_t>> end;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    end.emplace_back(schedule.ranks[rank].size(), 0);
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Action& action = schedule.ranks[rank][i];
      if (action.kind == ActionKind::kForward) {
        forward[key(action.stage, action.microbatch)] = {rank, i};
      } else if (gives_input_gradient(action.kind)) {
        backward[key(action.stage, action.microbatch)] = {rank, i};
      }
    }
  }
  const auto end_of = [&end](const Node& node) { return end[node.rank][node.index]; };
  std::int64_t makespan = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
        const Action& action = schedule.ranks[rank][i];
        std::int64_t start = i == 0 ? 0 : end[rank][i - 1];
        std::int64_t cost = costs.backward_weight;
        if (action.kind == ActionKind::kForward) {
          cost = costs.forward;
          if (action.stage > 0) {
            start = std::max(start, end_of(forward[key(action.stage - 1, action.microbatch)]));
          }
        } else if (gives_input_gradient(action.kind)) {
          cost = costs.backward_input +
                 (action.kind == ActionKind::kBackward ? costs.backward_weight : 0);
          const bool is_last = action.stage + 1 == schedule.stages();
          start = std::max(start,
                           is_last ? end_of(forward[key(action.stage, action.microbatch)])
                                   : end_of(backward[key(action.stage + 1, action.microbatch)]));
        }
        if (end[rank][i] < start + cost) {
          end[rank][i] = start + cost;
          moved = true;
        }
        makespan = std::max(makespan, end[rank][i]);
      }
    }
  }
  return makespan;
}

TEST_CASE("random schedules with random costs take what a second algorithm finds") {
  std::mt19937_64 random(test::test_seed());
  const auto cost = [&random] { return static_cast<std::int32_t>(random() % 9); };
  for (int i = 0; i < test::scaled(100); ++i) {
    const ScheduleRequest request = test::random_request(random);
    const UnitCosts costs{cost(), cost(), cost()};
    INFO(describe(request) << " F=" << costs.forward << " I=" << costs.backward_input
                           << " W=" << costs.backward_weight);
    const Schedule schedule = make_schedule(request);
    const UnitTime time = time_schedule(schedule, costs);
    REQUIRE(time.makespan_ticks == makespan_by_relaxation(schedule, costs));
    // Messages are free: a schedule with them takes as long.
    REQUIRE(time_schedule(add_communication(schedule), costs).makespan_ticks ==
            time.makespan_ticks);
  }
}

TEST_CASE("times of single actions: 1f1b on two ranks, by hand") {
  // rank 0: F0 0-1, F1 1-2, idle, B0 4-6, B1 7-9;  rank 1: F0 1-2, B0 2-4, F1 4-5, B1 5-7.
  const UnitTime time = time_schedule(make_schedule({ScheduleKind::k1F1B, 2, 1, 2}));
  const auto starts = [&](std::size_t rank) {
    std::vector<std::int64_t> result;
    for (const ActionTime& action : time.times[rank]) {
      result.push_back(action.start);
    }
    return result;
  };
  CHECK(starts(0) == std::vector<std::int64_t>{0, 1, 4, 7});
  CHECK(starts(1) == std::vector<std::int64_t>{1, 2, 4, 5});
  CHECK(time.makespan() == 9.0);
  CHECK(time.bubble_fraction() == Approx(1.0 - 12.0 / 18.0));
}

TEST_CASE("a schedule that cannot run is an internal error that names the cycle") {
  Schedule schedule = make_schedule({ScheduleKind::kGPipe, 2, 1, 2});
  std::swap(schedule.ranks[1][0], schedule.ranks[1][3]);  // 1B1 before 1F1
  CHECK_THROWS_WITH(time_schedule(schedule),
                    Catch::Matchers::ContainsSubstring("1B1 waits for 1F1"));
  CHECK_THROWS_AS(time_schedule(schedule), InternalError);
}

}  // namespace
}  // namespace lockstep
