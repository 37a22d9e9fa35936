#include "visualizer/models/imported_lanes.h"

#include <random>

#include <fmt/format.h>

#include "core/io/kineto_reader.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "visualizer/models/imported_text.h"

namespace lockstep::view {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::string kFixtures = "tests/core/io/fixtures";

std::string value_of(const DetailLines& lines, const std::string& name) {
  for (const auto& [key, value] : lines) {
    if (key == name) {
      return value;
    }
  }
  return "";
}

/// One lane of kernels and messages in random order, some nested, times in nanoseconds.
ImportedTrace random_trace(std::mt19937_64& random, int spans, bool nested) {
  ImportedTrace trace;
  ImportedLane lane;
  lane.kind = ImportedKind::kCompute;
  const NameId kernel = trace.names.intern("kernel");
  const NameId message = trace.names.intern("ncclKernel");
  Nanoseconds at = 0;
  for (int i = 0; i < spans; ++i) {
    ImportedSpan span;
    span.kind = random() % 3 == 0 ? ImportedKind::kCommunication : ImportedKind::kCompute;
    span.name = span.kind == ImportedKind::kCompute ? kernel : message;
    span.begin = at + static_cast<Nanoseconds>(random() % 50);
    const std::uint64_t most = random() % 20 == 0 ? 3000 : 60;
    span.end = span.begin + static_cast<Nanoseconds>(random() % most);
    at = nested && random() % 4 == 0 ? span.begin : span.end;
    lane.spans.push_back(span);
    trace.end = std::max(trace.end, span.end);
  }
  std::sort(lane.spans.begin(), lane.spans.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, -a.end) < std::pair(b.begin, -b.end);
  });
  trace.ranks.emplace_back().lanes.push_back(std::move(lane));
  return trace;
}

TEST_CASE("imported: a real trace of two ranks shows both ranks and their collectives") {
  const ImportedTrace trace = import_kineto(
      {kFixtures + "/rank-0.pt.trace.json.gz", kFixtures + "/rank-1.pt.trace.json.gz"});
  const ImportedLanes lanes(trace);
  std::array<int, 2> collectives{};
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    const LaneRow& it = lanes.rows()[row];
    REQUIRE((it.rank == 0 || it.rank == 1));
    CHECK(it.group == fmt::format("rank {}", it.rank));
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), 0)) {
      if (box.paint == Paint::kTransfer) {
        CHECK_THAT(lanes.label(row, box), ContainsSubstring("all") || ContainsSubstring("broad"));
        ++collectives[static_cast<std::size_t>(it.rank)];
      }
    }
  }
  CHECK(collectives[0] > 0);
  CHECK(collectives[0] == collectives[1]);
}

TEST_CASE(
    "imported: streams come first and a collective's row says group, bytes and who began it") {
  const ImportedTrace trace = import_kineto({kFixtures + "/hand_written_gpu.pt.trace.json"});
  const ImportedLanes lanes(trace);
  REQUIRE(lanes.rows().size() > 3);
  CHECK(lanes.rows()[0].group == "rank 3");
  CHECK_THAT(lanes.rows()[0].name, ContainsSubstring("stream"));
  bool kernel = false;
  bool reduced = false;
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    for (const LaneBox& box : lanes.boxes(row, lanes.whole(), 0)) {
      const DetailLines lines = lanes.details(row, box);
      if (value_of(lines, "what") == "sm90_xmma_gemm") {
        kernel = true;
        CHECK(box.paint == Paint::kKernel);
        CHECK_THAT(value_of(lines, "caused by"), ContainsSubstring("cudaLaunchKernel"));
        CHECK_THAT(value_of(lines, "ran for"), ContainsSubstring("20,001 ns"));
      }
      if (value_of(lines, "number in the group") == "12") {
        reduced = true;
        CHECK(box.paint == Paint::kTransfer);
        CHECK_THAT(lanes.label(row, box), ContainsSubstring("all_reduce"));
        CHECK(value_of(lines, "bytes") == "3.91 KiB");  // 1000 floats
        CHECK(value_of(lines, "ranks") == "[0, 1, 2, 3]");
      }
    }
  }
  CHECK(kernel);
  CHECK(reduced);
}

TEST_CASE("imported: boxes of a row do not overlap, and rows hold every span once") {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(10); ++round) {
    const ImportedTrace trace = random_trace(random, 2000, true);
    const ImportedLanes lanes(trace);
    CHECK(lanes.spans() + lanes.left_out() == 2000);
    std::size_t seen = 0;
    for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
      Nanoseconds until = 0;
      for (const LaneBox& box : lanes.boxes(row, lanes.whole(), 0)) {
        CHECK(box.begin >= until);
        until = box.end;
        seen += lanes.find(row, box.item).begin == box.begin ? 1U : 0U;
      }
    }
    CHECK(seen + lanes.left_out() >= 1990);  // a span of no length at the end is outside
  }
}

TEST_CASE("imported: folding keeps counts and busy times, of any window") {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(40); ++round) {
    const ImportedTrace trace = random_trace(random, 1500, round % 2 == 0);
    const ImportedLanes lanes(trace);
    const auto from = static_cast<Nanoseconds>(random() % static_cast<std::uint64_t>(trace.end));
    const TimeWindow window{from, from + 1 + static_cast<Nanoseconds>(random() % 20'000)};
    for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
      std::uint64_t count = 0;
      Nanoseconds busy = 0;
      for (const LaneBox& box : lanes.boxes(row, window, 0)) {
        ++count;
        busy += box.busy;
      }
      for (const Nanoseconds narrowest : {1, 17, 400, 100'000}) {
        std::uint64_t folded = 0;
        Nanoseconds folded_busy = 0;
        Nanoseconds until = -1;
        for (const LaneBox& box : lanes.boxes(row, {0, trace.end + 1}, narrowest)) {
          CHECK(box.begin >= until);
          until = box.end;
          CHECK(box.busy <= box.end - box.begin);
          folded += box.count;
          folded_busy += box.busy;
        }
        std::uint64_t all = 0;
        Nanoseconds all_busy = 0;
        for (const LaneBox& box : lanes.boxes(row, {0, trace.end + 1}, 0)) {
          ++all;
          all_busy += box.busy;
        }
        CHECK(folded == all);
        CHECK(folded_busy == all_busy);
      }
      CHECK(count <= 1500);
      // A second algorithm: paints' times by clipping every box.
      const std::vector<Nanoseconds> clipped = paint_times(lanes, row, window);
      const std::array<Nanoseconds, kPaintCount> summed = lanes.times(row, window);
      CHECK(std::equal(clipped.begin(), clipped.end(), summed.begin()));
      CHECK(busy >= 0);
    }
  }
}

TEST_CASE("imported: busy times are those of counting nanoseconds") {
  std::mt19937_64 random(test::test_seed());
  const ImportedTrace trace = random_trace(random, 300, true);
  const TimeWindow window{trace.end / 5, trace.end * 3 / 4};
  Nanoseconds kernels = 0;
  Nanoseconds transfers = 0;
  Nanoseconds exposed = 0;
  for (Nanoseconds t = window.from; t < window.to; ++t) {
    bool computes = false;
    bool sends = false;
    for (const ImportedSpan& span : trace.ranks[0].lanes[0].spans) {
      const bool open = span.begin <= t && t < span.end;
      computes |= open && span.kind == ImportedKind::kCompute;
      sends |= open && span.kind == ImportedKind::kCommunication;
    }
    kernels += computes ? 1 : 0;
    transfers += sends ? 1 : 0;
    exposed += sends && !computes ? 1 : 0;
  }
  const std::vector<ImportedBusy> busy = busy_times(trace, window);
  REQUIRE(busy.size() == 1);
  CHECK(busy[0].kernels == kernels);
  CHECK(busy[0].transfers == transfers);
  CHECK(busy[0].exposed == exposed);
}

TEST_CASE("imported: a million spans are at most a box for every thousandth of what is seen") {
  std::mt19937_64 random(1);
  const ImportedTrace trace = random_trace(random, 1'000'000, true);
  const ImportedLanes lanes(trace);
  for (std::size_t row = 0; row < lanes.rows().size(); ++row) {
    CHECK(lanes.boxes(row, lanes.whole(), lanes.whole().length() / 1000).size() <= 1002);
  }
}

TEST_CASE("imported: the text names ranks, lanes and what took longest") {
  const ImportedTrace trace = import_kineto({kFixtures + "/hand_written_gpu.pt.trace.json"});
  const ImportedLanes lanes(trace);
  const std::string text = imported_text(lanes);
  CHECK_THAT(text, ContainsSubstring("rank 3"));
  CHECK_THAT(text, ContainsSubstring("stream 20"));
  CHECK(longest_names(lanes, 1).size() == 1);
  CHECK(longest_names(lanes, 1)[0].time >= longest_names(lanes, 2)[1].time);
}

}  // namespace
}  // namespace lockstep::view
