#include "simulator/event_queue.h"

#include <algorithm>
#include <random>

#include "tests/support/catch.h"

namespace lockstep::sim {
namespace {

TEST_CASE("events leave by time, and those of equal time in the order in which they came") {
  std::mt19937_64 random(7);
  EventQueue<int> queue;
  std::vector<std::pair<Nanoseconds, int>> expected;
  for (int i = 0; i < 5000; ++i) {
    const auto time = static_cast<Nanoseconds>(random() % 100);
    queue.push(time, i);
    expected.emplace_back(time, i);
  }
  std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  for (const auto& [time, number] : expected) {
    const auto event = queue.pop();
    REQUIRE(event.time == time);
    REQUIRE(event.payload == number);
  }
  CHECK(queue.empty());
  CHECK(queue.pushed() == 5000);
}

TEST_CASE("pushing while popping keeps the order") {
  std::mt19937_64 random(8);
  EventQueue<int> queue;
  queue.push(0, 0);
  Nanoseconds last = 0;
  for (int i = 0; i < 20000 && !queue.empty(); ++i) {
    const auto event = queue.pop();
    REQUIRE(event.time >= last);
    last = event.time;
    for (std::uint64_t n = random() % 3; n > 0 || queue.size() < 10; n -= n > 0 ? 1 : 0) {
      queue.push(last + static_cast<Nanoseconds>(random() % 50), i);
    }
  }
}

}  // namespace
}  // namespace lockstep::sim
