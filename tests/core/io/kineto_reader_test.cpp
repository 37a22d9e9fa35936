#include "core/io/kineto_reader.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>

#include <fmt/format.h>
#include <zlib.h>

#include "core/error.h"
#include "core/io/files.h"
#include "core/io/kineto_events.h"
#include "core/io/kineto_kinds.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using test::TemporaryFolder;

const fs::path kFixtures = "tests/core/io/fixtures";

const ImportedLane& lane_of(const ImportedTrace& trace, std::size_t rank, const std::string& name) {
  for (const ImportedLane& lane : trace.ranks.at(rank).lanes) {
    if (trace.names.text(lane.name) == name) {
      return lane;
    }
  }
  throw std::runtime_error("no lane " + name);
}

std::string span_of(const std::string& rest) {
  return R"({"ph":"X","pid":1,"tid":2,)" + rest + "}";
}

ImportedTrace import_events(const std::string& events, const std::string& name = "t.json") {
  return import_kineto_text("{\"traceEvents\":[" + events + "]}", name);
}

fs::path write_gz(const TemporaryFolder& folder, const std::string& name, const std::string& text) {
  const fs::path path = folder.path() / name;
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  return path;
}

std::string refusal(const std::string& text) {
  try {
    import_kineto_text(text, "t.json");
  } catch (const BadInputError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("kineto: ranks, streams and collectives of a GPU trace are recognised") {
  const ImportedTrace trace = import_kineto({kFixtures / "hand_written_gpu.pt.trace.json"});
  REQUIRE(trace.ranks.size() == 1);
  const ImportedRank& rank = trace.ranks[0];
  CHECK(rank.rank == 3);
  CHECK(rank.world_size == 4);
  CHECK(trace.names.text(rank.backend) == "nccl");
  CHECK(trace.names.text(rank.device) == "Imaginary GPU");
  CHECK(trace.origin == 1'700'000'000'000'099'000);
  CHECK(trace.end == 120'000);
  REQUIRE(rank.lanes.size() == 5);  // profiler, host, streams 7, 9, 20
  const ImportedLane& stream = lane_of(trace, 0, "stream 7 ");
  CHECK(stream.kind == ImportedKind::kCompute);
  CHECK(trace.names.text(stream.process_label) == "GPU 0");
  REQUIRE(stream.spans.size() == 1);
  CHECK(stream.spans[0].begin == 13'500);
  CHECK(stream.spans[0].end == 33'501);
  CHECK(lane_of(trace, 0, "9").kind == ImportedKind::kCopy);
  CHECK(lane_of(trace, 0, "812").kind == ImportedKind::kCpu);
  CHECK(lane_of(trace, 0, "PyTorch Profiler").kind == ImportedKind::kAnnotation);
  const ImportedLane& host = lane_of(trace, 0, "812");
  REQUIRE(host.spans.size() == 3);
  CHECK(host.spans[2].depth == 2);
  CHECK(host.depth == 2);
  const ImportedLane& nccl = lane_of(trace, 0, "stream 20 ");
  CHECK(nccl.kind == ImportedKind::kCommunication);
  REQUIRE(nccl.spans.size() == 3);  // the string "20" is the same thread
  CHECK(nccl.spans[0].kind == ImportedKind::kAnnotation);
  CHECK(nccl.spans[1].depth == 1);
  REQUIRE(trace.collectives.size() == 2);
  const auto& reduce = trace.collectives[static_cast<std::size_t>(nccl.spans[1].collective)];
  CHECK(trace.names.text(reduce.kind) == "all_reduce");
  CHECK(trace.names.text(reduce.ranks) == "[0, 1, 2, 3]");
  CHECK(trace.names.text(reduce.group_description) == "default_pg");
  CHECK(reduce.group_size == 4);
  CHECK(reduce.sequence == 12);
  CHECK(reduce.bytes == 4000);
  const auto& gather = trace.collectives[static_cast<std::size_t>(nccl.spans[2].collective)];
  CHECK(trace.names.text(gather.kind) == "all_gather");
  CHECK(gather.bytes == 2000);
  REQUIRE(trace.flows.size() == 1);
  const ImportedFlow& flow = trace.flows[0];
  const auto name_at = [&](const ImportedFlowEnd& end) {
    const ImportedLane& lane = rank.lanes.at(static_cast<std::size_t>(end.lane));
    return trace.names.text(lane.spans.at(end.span).name);
  };
  CHECK(name_at(flow.from) == "cudaLaunchKernel");
  CHECK(name_at(flow.to) == "sm90_xmma_gemm");
}

TEST_CASE("kineto: two ranks that PyTorch 2.11 profiled") {
  // Counts and sums are what make_kineto_fixtures.py counted with Python's json.
  const ImportedTrace trace =
      import_kineto({kFixtures / "rank-0.pt.trace.json.gz", kFixtures / "rank-1.pt.trace.json.gz"});
  REQUIRE(trace.ranks.size() == 2);
  const std::int64_t nanoseconds[] = {52'937'796, 56'347'882};
  for (std::size_t number = 0; number < 2; ++number) {
    const ImportedRank& rank = trace.ranks[number];
    CHECK(rank.rank == static_cast<int>(number));
    CHECK(rank.world_size == 2);
    CHECK(trace.names.text(rank.backend) == "gloo");
    std::map<std::string, int> categories;
    std::int64_t sum = 0;
    int reductions = 0;
    int steps = 0;
    for (const ImportedLane& lane : rank.lanes) {
      CHECK_FALSE(lane.overlaps);
      for (const ImportedSpan& span : lane.spans) {
        ++categories[trace.names.text(span.category)];
        sum += span.end - span.begin;
        steps += trace.names.text(span.name).rfind("ProfilerStep#", 0) == 0 ? 1 : 0;
        if (span.collective >= 0) {
          const auto& it = trace.collectives[static_cast<std::size_t>(span.collective)];
          CHECK(trace.names.text(it.kind) == "all_reduce");
          CHECK(lane.kind == ImportedKind::kCommunication);
          CHECK(span.kind == ImportedKind::kCommunication);
          ++reductions;
        }
      }
    }
    CHECK(categories ==
          std::map<std::string, int>{{"cpu_op", 344}, {"user_annotation", 10}, {"Trace", 1}});
    CHECK(sum == nanoseconds[number]);
    CHECK(reductions == 2);
    CHECK(steps == 2);
  }
  CHECK(trace.flows.size() == 28);
  for (const ImportedFlow& flow : trace.flows) {
    CHECK(flow.from.span != kNoSpanNumber);
    CHECK(flow.to.span != kNoSpanNumber);
  }
}

TEST_CASE("kineto: a folder is its traces, packed or not") {
  const TemporaryFolder folder;
  write_gz(folder,
           "rank-1.pt.trace.json.gz",
           R"({"traceEvents":[{"ph":"X","pid":1,"tid":2,"ts":5,"dur":2,"name":"b"}]})");
  folder.write("rank-0.pt.trace.json", R"([{"ph":"X","pid":1,"tid":2,"ts":3,"dur":1,"name":"a"}])");
  folder.write("notes.json", "no trace");
  const ImportedTrace trace = import_kineto({folder.path()});
  REQUIRE(trace.ranks.size() == 2);
  CHECK(trace.ranks[0].rank == 0);
  CHECK(trace.ranks[1].rank == 1);
  CHECK(trace.ranks[1].lanes[0].spans[0].begin == 2000);
  folder.write("rank-1.again.pt.trace.json", "[]");
  CHECK_THROWS_WITH(import_kineto({folder.path()}), ContainsSubstring("both of rank 1"));
  const TemporaryFolder empty;
  CHECK_THROWS_WITH(import_kineto({empty.path()}), ContainsSubstring("no *.json"));
  CHECK_THROWS_WITH(import_kineto({empty.path() / "none.json"}),
                    ContainsSubstring("cannot be read"));
}

TEST_CASE("kineto: bases of files put their ranks on one clock") {
  const TemporaryFolder folder;
  const std::string event = span_of(R"("ts":1,"dur":1,"name":"x")");
  for (int rank = 0; rank < 2; ++rank) {
    folder.write(fmt::format("rank-{}.json", rank),
                 fmt::format(R"({{"traceEvents":[{}],"baseTimeNanoseconds":{}}})",
                             event,
                             1'700'000'000'000'000'000 + 250 * rank));
  }
  const ImportedTrace trace = import_kineto({folder.path()});
  CHECK(trace.ranks[0].lanes[0].spans[0].begin == 0);
  CHECK(trace.ranks[1].lanes[0].spans[0].begin == 250);
}

TEST_CASE("kineto: who does not say a rank has none, who has ranks as processes has those") {
  const std::string event = span_of(R"("ts":1,"dur":1,"name":"x")");
  CHECK_FALSE(import_events(event).ranks[0].rank.has_value());
  CHECK(import_events(event, "dir/rank-12.pt.trace.json.gz").ranks[0].rank == 12);
  CHECK_FALSE(import_events(event, "rank-1/trace.json").ranks[0].rank.has_value());
  const ImportedTrace merged = import_events(
      R"({"ph":"M","pid":2001,"name":"process_name","args":{"name":"rank 1 / GPU 0"}},)"
      R"({"ph":"M","pid":1001,"name":"process_name","args":{"name":"rank 0"}},)"
      R"({"ph":"X","pid":2001,"tid":1,"ts":1,"dur":1,"name":"b"},)"
      R"({"ph":"X","pid":1001,"tid":1,"ts":1,"dur":1,"name":"a"},)"
      R"({"ph":"s","pid":1001,"tid":1,"ts":1.5,"id":"0x1f","cat":"f","name":"m"},)"
      R"({"ph":"f","pid":2001,"tid":1,"ts":1.6,"id":31,"cat":"f","name":"m","bp":"e"})");
  REQUIRE(merged.ranks.size() == 2);
  CHECK(merged.ranks[0].rank == 0);
  CHECK(merged.names.text(merged.ranks[1].lanes[0].spans[0].name) == "b");
  REQUIRE(merged.flows.size() == 1);
  CHECK(merged.flows[0].from.rank == 0);
  CHECK(merged.flows[0].to.rank == 1);
  CHECK(merged.flows[0].to.span == 0);
}

TEST_CASE("kineto: times are whole nanoseconds however they are written") {
  CHECK(nanoseconds_of("12.345") == 12'345);
  CHECK(nanoseconds_of("12.3456") == 12'346);
  CHECK(nanoseconds_of("12.34549") == 12'345);
  CHECK(nanoseconds_of("-0.001") == -1);
  CHECK(nanoseconds_of("1.5e3") == 1'500'000);
  CHECK(nanoseconds_of("1700000000000000.123") == std::nullopt);  // beyond 36 years: a base's part
  CHECK(nanoseconds_of("1000000000000000.123") == 1'000'000'000'000'000'123);
  for (const char* wrong : {"", "-", "x", "1x", "1e300", "NaN", "99999999999999999999"}) {
    INFO(wrong);
    CHECK_FALSE(nanoseconds_of(wrong).has_value());
  }
  const ImportedTrace trace = import_events(span_of(R"("ts":"1.5","dur":"2","name":"x")") + "," +
                                            span_of(R"("ts":1e1,"dur":-3,"name":"y")"));
  CHECK(trace.ranks[0].lanes[0].spans[0].end == 2000);
  CHECK(trace.ranks[0].lanes[0].spans[1].begin == 8500);
  CHECK(trace.ranks[0].lanes[0].spans[1].end == 8500);
  CHECK(trace.notes.size() == 1);
}

TEST_CASE("kineto: begins and ends make spans") {
  const ImportedTrace trace = import_kineto_text(
      R"([{"ph":"B","pid":1,"tid":1,"ts":1,"name":"a"},{"ph":"B","pid":1,"tid":1,"ts":2,"name":"b"},)"
      R"({"ph":"E","pid":1,"tid":1,"ts":3},{"ph":"E","pid":1,"tid":1,"ts":4},)"
      R"({"ph":"E","pid":1,"tid":1,"ts":5},)",
      "t.json");
  const ImportedLane& lane = trace.ranks[0].lanes[0];
  REQUIRE(lane.spans.size() == 2);
  CHECK(trace.names.text(lane.spans[0].name) == "a");
  CHECK(lane.spans[0].end == 3000);
  CHECK(lane.spans[1].depth == 1);
  CHECK(trace.notes.size() == 2);  // an end alone, the missing bracket
}

TEST_CASE("kineto: an array may lack its last bracket, an object may lack nothing") {
  const std::string event = span_of(R"("ts":1,"dur":1,"name":"x")");
  for (const std::string& text : {"[" + event,
                                  "[" + event + ",",
                                  "[" + event + ",\n",
                                  "[" + event + ",]",
                                  "[" + event + "]"}) {
    INFO(text);
    CHECK(import_kineto_text(text, "t.json").ranks[0].lanes[0].spans.size() == 1);
  }
  CHECK_THAT(refusal("[" + event.substr(0, event.size() - 3)), ContainsSubstring("byte "));
  const std::string whole = "{\"traceEvents\": [" + event + "], \"traceName\": \"a\"}";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    INFO(whole.substr(0, length));
    const std::string message = refusal(whole.substr(0, length));
    CHECK_THAT(message, ContainsSubstring("t.json: byte "));
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("kineto: what is no trace is refused with its place") {
  const auto at = [](const std::string& text, const std::string& place) {
    INFO(text);
    CHECK_THAT(refusal(text), ContainsSubstring("t.json: byte " + place));
  };
  at("", "0: the file is empty");
  at("  \n", "3: the file is empty");
  at("{}", "2: no traceEvents");
  at("17", "0: ");
  at("[1]", "1: an event that is no object");
  at("[{}]", "1: an event without ph");
  at(R"([{"ph":"X","ts":1}])", "1: an X event without ts or dur");
  at(R"([{"ph":"X","ts":"soon","dur":1}])", "16: ts is \"soon\"");
  at(R"([{"ph":"s","ts":1}])", "1: a flow event without ts or id");
  at(R"([{"ph":7}])", "7: a string should be here");
  at(R"([{"ph" "X"}])", "7: ");
  at(R"([{"ph":"X" "ts":1}])", "11: ");
  at("[] x", "3: more behind");
  at("[{\"a\":" + std::string(200, '['), "104: nested deeper");
  at(R"([{"a":"\q"}])", "9: ");
  at(R"([{"a":truth}])", "6: \"truth\" is no value");
  at(R"({"traceEvents":[],"distributedInfo":{"rank":-1}})", "44: distributedInfo");
  at(R"({"traceEvents":[],"baseTimeNanoseconds":"x"})", "43: baseTimeNanoseconds");
  at(std::string("[\0]", 3), "1: a zero byte");
}

TEST_CASE("kineto: a packed file that is cut or damaged is refused") {
  const TemporaryFolder folder;
  std::string text = "[";
  for (int i = 0; i < 20'000; ++i) {
    text += span_of(fmt::format(R"("ts":{},"dur":1,"name":"n{}")", i, i * 7919 % 1009)) + ",";
  }
  const fs::path path = write_gz(folder, "whole.json.gz", text);
  CHECK(import_kineto({path}).ranks[0].lanes[0].spans.size() == 20'000);
  const std::string bytes = read_whole(path, "test");
  CHECK_THROWS_WITH(import_kineto({folder.write("cut.json.gz", bytes.substr(0, bytes.size() / 2))}),
                    ContainsSubstring("cut short"));
  std::string damaged = bytes;
  damaged[bytes.size() / 2] = static_cast<char>(~damaged[bytes.size() / 2]);
  CHECK_THROWS_AS(import_kineto({folder.write("damaged.json.gz", damaged)}), BadInputError);
  std::string sum = bytes;
  sum[bytes.size() - 6] = static_cast<char>(~sum[bytes.size() - 6]);
  CHECK_THROWS_AS(import_kineto({folder.write("sum.json.gz", sum)}), BadInputError);
}

TEST_CASE("kineto: names are kept fit to show") {
  const ImportedTrace trace = import_kineto_text(
      "[" + span_of("\"ts\":1,\"dur\":1,\"name\":\"a\tb\\u0001\\u00e9\\ud83d\\ude00\\ud83d\"") +
          "," + span_of("\"ts\":3,\"dur\":1,\"name\":\"\xff\"") + "," +
          span_of("\"ts\":5,\"dur\":1,\"name\":\"" + std::string(100'000, 'x') + "\"") + "]",
      "t.json");
  const std::vector<ImportedSpan>& spans = trace.ranks[0].lanes[0].spans;
  REQUIRE(spans.size() == 3);
  CHECK(trace.names.text(spans[0].name) == "a b \u00e9\U0001F600\uFFFD");
  CHECK(trace.names.text(spans[1].name) == "\\xFF");
  CHECK(trace.names.text(spans[2].name).size() == 1000);
}

TEST_CASE("kineto: collectives are known by all their names") {
  for (const auto& [name, kind] : std::map<std::string, std::string>{
           {"nccl:all_reduce", "all_reduce"},
           {"allreduce_coalesced", "all_reduce"},
           {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "all_reduce"},
           {"ncclKernel_ReduceScatter_RING_LL_Sum_half", "reduce_scatter"},
           {"_reduce_scatter_base", "reduce_scatter"},
           {"all_gather_into_tensor_coalesced", "all_gather"},
           {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "send_recv"},
           {"nccl:send 1->2", "send"},
           {"nccl:recv 3<-0", "recv"},
           {"ncclKernel_Broadcast_RING_LL_Sum_int8_t", "broadcast"},
           {"alltoallv", "all_to_all"},
           {"ncclKernel_Reduce_RING", "reduce"},
           {"gemm", ""}}) {
    INFO(name);
    CHECK(collective_kind(name) == kind);
  }
  CHECK(kind_of_span("kernel", "ncclKernel_AllReduce") == ImportedKind::kCommunication);
  CHECK(kind_of_span("kernel", "void gemm") == ImportedKind::kCompute);
  CHECK(kind_of_span("gpu_memset", "Memset (Device)") == ImportedKind::kCopy);
  CHECK(kind_of_span("user_annotation", "nccl:all_reduce") == ImportedKind::kAnnotation);
}

TEST_CASE("kineto: depths are those of counting, whatever the order in the file") {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(20); ++round) {
    std::vector<std::pair<int, int>> spans;
    const std::function<void(int, int, int)> fill = [&](int from, int to, int depth) {
      while (from < to && depth < 6) {
        const int begin = from + static_cast<int>(random() % 3);
        const int end = begin + 1 + static_cast<int>(random() % 30);
        if (end > to) {
          return;
        }
        spans.emplace_back(begin, end);
        fill(begin + 1, end - 1, depth + 1);
        from = end;
      }
    };
    fill(0, 300, 0);
    std::shuffle(spans.begin(), spans.end(), random);
    std::string events;
    for (const auto& [begin, end] : spans) {
      events += (events.empty() ? "" : ",") +
                span_of(fmt::format(R"("ts":{},"dur":{},"name":"n")", begin, end - begin));
    }
    const ImportedTrace trace = import_events(events);
    const ImportedLane& lane = trace.ranks[0].lanes[0];
    REQUIRE(lane.spans.size() == spans.size());
    CHECK_FALSE(lane.overlaps);
    for (const ImportedSpan& span : lane.spans) {
      const auto holds = [&](const ImportedSpan& other) {
        return &other != &span && other.begin <= span.begin && other.end >= span.end &&
               other.end - other.begin > span.end - span.begin;
      };
      CHECK(span.depth == std::count_if(lane.spans.begin(), lane.spans.end(), holds));
    }
  }
}

TEST_CASE("kineto: damaged bytes are read or refused, never more") {
  std::mt19937_64 random(test::test_seed());
  const std::string whole = read_whole(kFixtures / "hand_written_gpu.pt.trace.json", "test");
  for (int round = 0; round < test::scaled(500); ++round) {
    std::string text = whole;
    for (int change = 0; change < 3; ++change) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 40);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
      }
    }
    try {
      import_kineto_text(text, "t.json");
    } catch (const BadInputError& error) {
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
    }
  }
}

}  // namespace
}  // namespace lockstep
