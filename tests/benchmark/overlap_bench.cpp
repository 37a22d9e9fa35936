// Overlap by the clock: how much faster steps of DDP in several buckets are than in one over slow
// links, beside what the simulator says for the same links. Rounds of both are interleaved, the
// best steps count. Ends with 1 if less than 70 % of the predicted gain is there.
//
//     overlap_bench [ROUNDS]
#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "tests/benchmark/machine.h"
#include "tests/support/throttled_run.h"

int main(int count, char** arguments) {
  namespace bench = lockstep::bench;
  using lockstep::test::ThrottledRun;
  constexpr double kPart = 0.7;
  const int rounds = count > 1 ? std::max(std::atoi(arguments[1]), 1) : 10;
  const bench::MachineLock lock;
  bench::wait_until_idle(std::chrono::seconds(60));
  const bench::LoadMeter load;
  const lockstep::ClusterSpec cluster = lockstep::test::throttled_machine();
  ThrottledRun one(lockstep::test::kOneBucketMib, cluster);
  ThrottledRun many(lockstep::test::kBucketPerLayerMib, cluster);
  for (int round = 0; round < rounds; ++round) {
    one.measure();
    many.measure();
  }
  const double predicted = one.predicted_step_s - many.predicted_step_s;
  const double measured = one.step_s - many.step_s;
  fmt::print("one bucket:      {}\nbucket a layer:  {}\n", one.text(), many.text());
  fmt::print("gain of buckets: {:.1f} ms predicted, {:.1f} ms run, {:.0f} % (wanted: {:.0f} %)\n",
             predicted * 1e3,
             measured * 1e3,
             100 * measured / predicted,
             100 * kPart);
  fmt::print("others used {:.0f} % of the machine meanwhile\n", 100 * load.others());
  return measured >= kPart * predicted ? 0 : 1;
}
