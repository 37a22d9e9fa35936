// What timelines are painted from, on cases that are worked out by hand.
#include "visualizer/models/lanes.h"

#include "tests/support/catch.h"
#include "visualizer/models/metrics.h"
#include "visualizer/models/time_axis.h"

using namespace lockstep;
using namespace lockstep::view;

namespace {

std::vector<std::string> texts(const TimeAxis& axis) {
  std::vector<std::string> result;
  for (const Tick& tick : axis.ticks) {
    result.push_back(tick.text);
  }
  return result;
}

}  // namespace

TEST_CASE("a step of ticks is the next of 1, 2, 5, 10, ...") {
  CHECK(round_step(1) == 1);
  CHECK(round_step(3) == 5);
  CHECK(round_step(5) == 5);
  CHECK(round_step(6) == 10);
  CHECK(round_step(1'000'001) == 2'000'000);
}

TEST_CASE("ticks stand at round times inside the window") {
  const TimeAxis axis = time_axis({1'500'000, 5'200'000}, 4);
  CHECK(axis.step == 1'000'000);
  CHECK(texts(axis) == std::vector<std::string>{"2 ms", "3 ms", "4 ms", "5 ms"});
  CHECK(axis.ticks.front().time == 2'000'000);
  CHECK(axis.base == 0);
}

TEST_CASE("far in, ticks are counted from the first one") {
  const TimeAxis axis = time_axis({123'456'785, 123'456'825}, 4);
  CHECK(axis.step == 10);
  CHECK(axis.base == 123'456'790);
  CHECK(texts(axis) == std::vector<std::string>{"123.45679 ms", "+10 ns", "+20 ns", "+30 ns"});
}

TEST_CASE("differences are percentages of values and points of fractions") {
  const Metric fast{MetricId::kStepTime, 1.5, "1.5 s", "", true};
  const Metric slow{MetricId::kStepTime, 2.0, "2 s", "", true};
  CHECK(difference_text(fast, slow) == "-25.0 %");
  CHECK(difference_text(slow, slow).empty());
  const Metric low{MetricId::kMfu, 0.40, "", "", false};
  const Metric high{MetricId::kMfu, 0.425, "", "", false};
  CHECK(difference_text(high, low) == "+2.5 pp");
  const Metric nothing{MetricId::kSent, 0, "0 B", "", true};
  const Metric some{MetricId::kSent, 1024, "1.00 KiB", "", true};
  CHECK(difference_text(some, nothing) == "+1.00 KiB");
}
