// Two ranks, one overlap pattern each, times written down by hand (whole seconds).
#include "simulator/engine.h"

#include <memory>

#include "core/error.h"
#include "core/planner/program_builder.h"
#include "simulator/simulate.h"
#include "tests/core/check/tiny_plans.h"
#include "tests/simulator/whole_costs.h"
#include "tests/support/catch.h"

namespace lockstep {
namespace {

constexpr double kSecond = 1e9;

/// A section of two ranks that differ in their data coordinate or in their stage. Computing on
/// {n} costs n seconds, so does communicating n elements.
class TwoRanks {
 public:
  explicit TwoRanks(bool stages) : tables_(make_mesh(stages), test::two_layer_graph()) {
    tables_.plan().class_axes = mask_of(stages ? Axis::kPipeline : Axis::kData);
    group_ = tables_.communicator(mask_of(stages ? Axis::kPipeline : Axis::kData));
    tables_.plan().variant_of_iteration = {0};
    tables_.plan().sections.push_back({SectionKind::kStep, 0, {}});
    costs_.compute = [](const sim::PriceKey& key) {
      return key.kind == OperationKind::kHost ? 0.0 : static_cast<double>(key.shape.extent[0]);
    };
    costs_.communication = [](const sim::PriceKey& key, const sim::GroupPlacement& placement) {
      return static_cast<double>(key.elements) * placement.slowdown;
    };
  }

  /// Writes the program of the next rank.
  template <typename Body>
  void rank(Body&& body) {
    ProgramBuilder b(tables_, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    b.at(Phase::kForward, 0, 0);
    body(b);
    tables_.plan().sections[0].programs.push_back(b.end_section());
    tables_.plan().buffers.push_back(b.take_buffers());
  }

  /// Spans by rank; Span::operation is the number among those that are no alloc.
  const std::vector<TraceTrack>& run(const sim::WhatIf& what_if = {}) {
    ClusterSpec cluster;
    sim::SimulationOptions options;
    options.what_if = what_if;
    simulation_ = sim::simulate(tables_.plan(), cluster, costs_, options);
    return simulation_.trace.steps[0].tracks;
  }

  std::uint8_t group() const { return group_; }
  test::WholeCosts& costs() { return costs_; }
  const Trace& trace() const { return simulation_.trace; }

 private:
  static Mesh make_mesh(bool stages) { return stages ? test::mesh_of(2, 1) : test::mesh_of(1, 2); }

  PlanBuilder tables_;
  test::WholeCosts costs_;
  std::uint8_t group_ = 0;
  sim::Simulation simulation_;
};

BufferId buffer(ProgramBuilder& b) {
  return b.alloc(Category::kActivation, DType::kFp32, 64);
}

void compute(ProgramBuilder& b, std::int64_t seconds, BufferId reads, BufferId writes) {
  b.compute(Work::kScale, {{seconds}}, {b.whole(reads)}, {b.whole(writes)});
}

void all_reduce(ProgramBuilder& b, std::uint8_t group, std::int64_t seconds, BufferId of) {
  Extras extras;
  extras.stream = Stream::kData;
  b.collective(
      Collective::kAllReduce, group, Reduction::kSum, seconds, b.whole(of), b.whole(of), extras);
}

struct Times {
  double arrived;
  double started;
  double ended;
};

void check(const Span& span, const Times& times) {
  CHECK(static_cast<double>(span.arrived) == Approx(times.arrived * kSecond));
  CHECK(static_cast<double>(span.started) == Approx(times.started * kSecond));
  CHECK(static_cast<double>(span.ended) == Approx(times.ended * kSecond));
}

TEST_CASE("an all-reduce begins when its last member arrives and hides behind compute") {
  TwoRanks two(false);
  for (const std::int64_t first : {2, 5}) {  // rank 1 comes three seconds later
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      const BufferId y = buffer(b);
      compute(b, first, x, x);
      all_reduce(b, two.group(), 3, x);
      compute(b, 2, y, y);  // needs nothing from the all-reduce
      compute(b, 1, x, x);  // needs its result
    });
  }
  const std::vector<TraceTrack>& tracks = two.run();
  REQUIRE(tracks.size() == 2);
  check(tracks[0].spans[0], {0, 0, 2});
  check(tracks[0].spans[1], {2, 5, 8});  // waits three seconds, then transfers three
  check(tracks[0].spans[2], {2, 2, 4});
  check(tracks[0].spans[3], {8, 8, 9});
  check(tracks[1].spans[0], {0, 0, 5});
  check(tracks[1].spans[1], {5, 5, 8});
  check(tracks[1].spans[2], {5, 5, 7});
  check(tracks[1].spans[3], {8, 8, 9});
}

TEST_CASE("compute slows down while communication runs on its device, and only then") {
  TwoRanks two(false);
  two.costs().beside = 0.5;
  for (int rank = 0; rank < 2; ++rank) {
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      const BufferId y = buffer(b);
      compute(b, 2, x, x);
      all_reduce(b, two.group(), 4, x);
      compute(b, 3, y, y);  // four seconds at half speed, the last second of work at full speed
    });
  }
  const std::vector<TraceTrack>& tracks = two.run();
  check(tracks[0].spans[1], {2, 2, 6});
  check(tracks[0].spans[2], {2, 2, 7});
}

TEST_CASE("operations of one communicator follow one another, on whatever streams they are") {
  TwoRanks two(false);
  for (int rank = 0; rank < 2; ++rank) {
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      const BufferId y = buffer(b);
      all_reduce(b, two.group(), 3, x);
      Extras extras;
      extras.stream = Stream::kTensor;
      b.collective(
          Collective::kAllReduce, two.group(), Reduction::kSum, 2, b.whole(y), b.whole(y), extras);
    });
  }
  const std::vector<TraceTrack>& tracks = two.run();
  check(tracks[0].spans[0], {0, 0, 3});
  check(tracks[0].spans[1], {3, 3, 5});
}

TEST_CASE("the host issues ahead of the device, one launch after another") {
  TwoRanks two(false);
  two.costs().launch = 2;
  for (int rank = 0; rank < 2; ++rank) {
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      compute(b, 1, x, x);  // issued at 2: the device waits for the host
      compute(b, 5, x, x);  // issued at 4
      compute(b, 1, x, x);  // issued at 6: the host is ahead
    });
  }
  const std::vector<Span>& spans = two.run()[0].spans;
  check(spans[0], {2, 2, 3});
  check(spans[1], {4, 4, 9});
  check(spans[2], {9, 9, 10});
  CHECK(spans[2].issued == 6'000'000'000);
}

TEST_CASE("the host waits for what it reads before it issues more") {
  TwoRanks two(false);
  two.costs().launch = 1;
  for (int rank = 0; rank < 2; ++rank) {
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      compute(b, 5, x, x);  // issued at 1, ends at 6
      const View read = b.whole(x);
      Extras extras;
      extras.flags = kHostSync;
      b.host(Work::kReadScalar, {{1}}, Views(&read, 1), Views(), extras);
      compute(b, 1, x, x);  // issued at 7
    });
  }
  const std::vector<Span>& spans = two.run()[0].spans;
  check(spans[1], {6, 6, 6});
  check(spans[2], {7, 7, 8});
}

TEST_CASE("a recv begins when its send does, and ends with it") {
  TwoRanks two(true);
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    compute(b, 2, x, x);
    b.send(two.group(), 1, 7, b.range(x, 0, 3));
    compute(b, 1, x, x);  // writes what is being sent
  });
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    b.recv(two.group(), 0, 7, b.range(x, 0, 3));
    compute(b, 4, x, x);
  });
  const std::vector<TraceTrack>& tracks = two.run();
  check(tracks[0].spans[1], {2, 2, 5});
  check(tracks[0].spans[2], {5, 5, 6});
  check(tracks[1].spans[0], {0, 2, 5});
  check(tracks[1].spans[1], {5, 5, 9});
}

TEST_CASE("messages of one direction do not hold those of the other") {
  TwoRanks two(true);
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    const BufferId y = buffer(b);
    b.recv(two.group(), 1, 1, b.range(y, 0, 1));  // comes at 6
    b.send(two.group(), 1, 2, b.range(x, 0, 1));
  });
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    const BufferId y = buffer(b);
    b.recv(two.group(), 0, 2, b.range(x, 0, 1));
    compute(b, 4, x, y);
    b.send(two.group(), 0, 1, b.range(y, 0, 1));
  });
  const std::vector<TraceTrack>& tracks = two.run();
  check(tracks[0].spans[1], {0, 0, 1});
  check(tracks[1].spans[1], {1, 1, 5});
  check(tracks[0].spans[0], {0, 5, 6});
}

TEST_CASE("with a single connection what waits holds all that was issued after it") {
  for (const bool single : {false, true}) {
    TwoRanks two(false);
    for (int rank = 0; rank < 2; ++rank) {
      two.rank([&](ProgramBuilder& b) {
        const BufferId x = buffer(b);
        const BufferId y = buffer(b);
        compute(b, 2, x, x);
        all_reduce(b, two.group(), 3, x);  // waits for x until 2
        Extras extras;
        extras.stream = Stream::kCopy;
        b.compute(Work::kScale, {{1}}, {b.whole(y)}, {b.whole(y)}, extras);
      });
    }
    sim::WhatIf what_if;
    what_if.single_connection = single;
    const std::vector<Span>& spans = two.run(what_if)[0].spans;
    check(spans[1], {2, 2, 5});
    check(spans[2], single ? Times{2, 2, 3} : Times{0, 0, 1});
  }
}

TEST_CASE("a failed rank ends the run at the timeout, and the trace says who waits for whom") {
  TwoRanks two(false);
  for (int rank = 0; rank < 2; ++rank) {
    two.rank([&](ProgramBuilder& b) {
      const BufferId x = buffer(b);
      compute(b, 2, x, x);
      all_reduce(b, two.group(), 3, x);
      compute(b, 1, x, x);
    });
  }
  sim::WhatIf what_if;
  what_if.failed = sim::FailedRank{1, 1.0};
  what_if.timeout_s = 30;
  const std::vector<TraceTrack>& tracks = two.run(what_if);
  CHECK(tracks[0].spans[0].state == SpanState::kDone);
  CHECK(tracks[0].spans[1].state == SpanState::kArrived);
  CHECK(tracks[0].spans[2].state != SpanState::kDone);
  CHECK(tracks[1].spans[0].state == SpanState::kRunning);
  CHECK(tracks[1].spans[0].ended == 1'000'000'000);  // as long as its rank lived
  REQUIRE(two.trace().stalls.size() == 2);
  CHECK(two.trace().stalls[0].rank == 0);
  CHECK(two.trace().stalls[0].missing == std::vector<std::int32_t>{1});
  CHECK(two.trace().stalls[1].missing == std::vector<std::int32_t>{1});  // it died
  CHECK(two.trace().stalls[1].since == 1'000'000'000);
  CHECK(two.trace().steps[0].end == 31'000'000'000);
}

TEST_CASE("a plan that cannot go on is refused with the ranks that wait") {
  TwoRanks two(true);
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    const BufferId y = buffer(b);
    b.recv(two.group(), 1, 1, b.range(x, 0, 1));
    compute(b, 1, x, y);
    b.send(two.group(), 1, 2, b.range(y, 0, 1));
  });
  two.rank([&](ProgramBuilder& b) {
    const BufferId x = buffer(b);
    const BufferId y = buffer(b);
    b.recv(two.group(), 0, 2, b.range(x, 0, 1));
    compute(b, 1, x, y);
    b.send(two.group(), 0, 1, b.range(y, 0, 1));
  });
  CHECK_THROWS_AS(two.run(), TimeoutError);
}

}  // namespace
}  // namespace lockstep
