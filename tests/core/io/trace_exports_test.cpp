// Exports to other tools, held against those tools' rules (tests/support/chrome_trace_checker.h,
// and what Holistic Trace Analysis and PyTorch's memory viewer look for) and read back by our
// importer.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/io/chrome_trace.h"
#include "core/io/export_spans.h"
#include "core/io/files.h"
#include "core/io/kineto_reader.h"
#include "core/io/kineto_trace.h"
#include "core/io/memory_snapshot.h"
#include "core/io/span_table.h"
#include "core/memory_timeline.h"
#include "core/planner/planner.h"
#include "core/trace_index.h"
#include "core/traffic.h"
#include "tests/support/catch.h"
#include "tests/support/chrome_trace_checker.h"
#include "tests/support/hand_traces.h"
#include "tests/support/random_scenario.h"
#include "tests/support/scale.h"
#include "tests/support/scenarios.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;
using Json = nlohmann::json;

template <typename Write, typename... Arguments>
std::string text_of(Write&& write, const Arguments&... arguments) {
  std::string text;
  write([&](std::string_view piece) { text += piece; }, arguments...);
  return text;
}

struct Run {
  Plan plan;
  Trace trace;
};

Run run_of(const Scenario& scenario, std::mt19937_64& random) {
  Run run{make_plan(resolved(scenario)), {}};
  run.trace = test::random_trace(run.plan, test::steady_section(run.plan), random);
  return run;
}

Run pipeline_run() {
  Scenario scenario = test::tiny_gpt();
  scenario.strategy.pipeline.degree = 2;
  scenario.strategy.data.kind = DataKind::kDdp;
  scenario.strategy.data.degree = 2;
  scenario.training.accumulate = 3;
  std::mt19937_64 random(test::test_seed());
  return run_of(scenario, random);
}

using SpanKey = std::tuple<std::string, std::string, Nanoseconds, Nanoseconds>;
using Spans = std::multiset<SpanKey>;  ///< lane, name, begin, end

Spans spans_of(const ImportedTrace& trace, int rank, const std::set<std::string>& categories) {
  Spans spans;
  for (const ImportedRank& it : trace.ranks) {
    for (const ImportedLane& lane : it.lanes) {
      CHECK_FALSE(lane.overlaps);
      for (const ImportedSpan& span : lane.spans) {
        if (it.rank == rank && categories.count(trace.names.text(span.category)) != 0) {
          spans.emplace(trace.names.text(lane.name),
                        trace.names.text(span.name),
                        span.begin + trace.origin,
                        span.end + trace.origin);
        }
      }
    }
  }
  return spans;
}

TEST_CASE("exports: Chrome traces of random scenarios pass Perfetto's rules and are read back") {
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(40); ++round) {
    const Scenario scenario = test::random_scenario(random);
    INFO(test::text_of(scenario));
    const Run run = run_of(scenario, random);
    const std::string text = text_of(write_chrome_trace, run.plan, run.trace, ChromeTraceOptions{});
    REQUIRE(test::check_chrome_trace(text).problems == std::vector<std::string>{});
    const ImportedTrace back = import_kineto_text(text, "chrome.json");
    REQUIRE(back.ranks.size() == static_cast<std::size_t>(run.plan.mesh.world_size()));
    const TraceIndex index(run.plan, run.trace.steps[0]);
    std::size_t sends = 0;
    for (int rank = 0; rank < run.plan.mesh.world_size(); ++rank) {
      const int track = index.step().track_of_rank[static_cast<std::size_t>(rank)];
      Spans expected;
      for (const Span& span : index.track(track).spans) {
        const Operation& op = index.operation({track, span.operation});
        const SpanTimes times = index.times({track, span.operation});
        sends += op.kind == OperationKind::kSend ? 1 : 0;
        if (times.ended > times.started) {
          expected.emplace(
              export_lane_name(export_lane(op, run.plan.mesh.coordinate(rank, Axis::kPipeline))),
              export_name(run.plan, index.track(track).class_index, op),
              times.started,
              times.ended);
        }
      }
      REQUIRE(spans_of(back, rank, {"compute", "communication", "host"}) == expected);
    }
    CHECK(back.flows.size() == sends);
  }
}

TEST_CASE("exports: Kineto traces of random scenarios pass Perfetto's rules and are read back") {
  std::mt19937_64 random(test::test_seed() + 1);
  for (int round = 0; round < test::scaled(40); ++round) {
    const Scenario scenario = test::random_scenario(random);
    INFO(test::text_of(scenario));
    const Run run = run_of(scenario, random);
    const TraceIndex index(run.plan, run.trace.steps[0]);
    const int rank = static_cast<int>(random() % static_cast<unsigned>(run.plan.mesh.world_size()));
    const std::string text =
        text_of(write_kineto_trace, run.plan, run.trace, rank, KinetoOptions{});
    REQUIRE(test::check_chrome_trace(text).problems == std::vector<std::string>{});
    const ImportedTrace back = import_kineto_text(text, "kineto.json");
    REQUIRE(back.ranks.size() == 1);
    CHECK(back.ranks[0].rank == rank);
    CHECK(back.ranks[0].world_size == run.plan.mesh.world_size());
    const int track = index.step().track_of_rank[static_cast<std::size_t>(rank)];
    std::multiset<std::pair<Nanoseconds, Nanoseconds>> expected;
    std::map<std::string, int> messages;
    for (const Span& span : index.track(track).spans) {
      const Operation& op = index.operation({track, span.operation});
      const SpanTimes times = index.times({track, span.operation});
      const Nanoseconds begin = is_communication(op) ? times.arrived : times.started;
      if (op.stream != Stream::kHost && times.ended > begin) {
        expected.emplace(begin, times.ended);
        messages[is_communication(op) ? kind_text(op) : ""] += is_communication(op) ? 1 : 0;
      }
    }
    messages.erase("");
    std::multiset<std::pair<Nanoseconds, Nanoseconds>> found;
    for (const auto& [lane, name, begin, end] : spans_of(back, rank, {"kernel", "gpu_memcpy"})) {
      found.emplace(begin, end);
    }
    CHECK(found == expected);
    std::map<std::string, int> read;
    for (const ImportedLane& lane : back.ranks[0].lanes) {
      for (const ImportedSpan& span : lane.spans) {
        if (span.kind == ImportedKind::kCommunication) {
          const auto& about = back.collectives[static_cast<std::size_t>(span.collective)];
          ++read[back.names.text(about.kind)];
          CHECK(about.bytes.has_value());
        }
      }
    }
    CHECK(read == messages);
  }
}

TEST_CASE("exports: a folder of Kineto traces is what Holistic Trace Analysis looks for") {
  const Run run = pipeline_run();
  const TemporaryFolder folder;
  const fs::path out = folder.path() / "traces";
  CHECK(write_kineto_folder(out, run.plan, run.trace, {.device = "H100", .devices_per_node = 2}) ==
        4);
  const ImportedTrace trace = import_kineto({out});
  REQUIRE(trace.ranks.size() == 4);
  for (int rank = 0; rank < 4; ++rank) {
    CHECK(trace.ranks[static_cast<std::size_t>(rank)].rank == rank);
    CHECK(trace.names.text(trace.ranks[static_cast<std::size_t>(rank)].device) == "H100");
    const std::string text = text_of(
        write_kineto_trace, run.plan, run.trace, rank, KinetoOptions{.devices_per_node = 2});
    std::smatch match;
    const std::regex ranks("\"rank\":\\s+(\\d+)");
    REQUIRE(std::regex_search(text, match, ranks));
    CHECK(match[1] == std::to_string(rank));
    const Json json = Json::parse(text);
    int steps = 0;
    int reductions = 0;
    int replicated = 0;
    for (const Json& event : json["traceEvents"]) {
      const std::string name = event["name"];
      steps += name.rfind("ProfilerStep#", 0) == 0 ? 1 : 0;
      if (event.value("cat", "") != "kernel") {
        continue;
      }
      CHECK(event["pid"] == rank % 2);
      CHECK(event["tid"] > 0);
      CHECK(event["args"]["stream"] == event["tid"]);
      CHECK((name.rfind("nccl", 0) == 0) == event["args"].contains("Collective name"));
      if (event["args"].value("Collective name", "") == "allreduce") {
        ++reductions;
        for (const char* key : {"In msg nelems", "Out msg nelems", "Group size", "Seq"}) {
          CHECK(event["args"][key].is_number_integer());
        }
        // Ranks 0, 1 are stage 0, ranks 2, 3 stage 1: two replicas each.
        if (event["args"]["Process Group Description"] == "dp") {
          ++replicated;
          CHECK(event["args"]["Process Group Ranks"] == (rank < 2 ? "[0, 1]" : "[2, 3]"));
        }
        CHECK(event["args"]["dtype"].is_string());
      }
    }
    CHECK(steps == 1);
    CHECK(reductions > 0);
    CHECK(replicated > 0);
  }
  for (const fs::directory_entry& file : fs::directory_iterator(out)) {
    CHECK(file.path().extension() == ".gz");
  }
}

/// Reads the file with Python's pickle and prints it as JSON; nothing where there is no python3.
std::optional<Json> unpickled(const fs::path& path) {
  const fs::path json = path.string() + ".json";
  const std::string program =
      "import json,pickle,sys; json.dump(pickle.load(open(sys.argv[1],'rb')), "
      "open(sys.argv[2],'w'))";
  const std::string command =
      fmt::format("python3 -c \"{}\" {} {} 2> /dev/null", program, path.string(), json.string());
  if (std::system("command -v python3 > /dev/null") != 0) {
    return std::nullopt;
  }
  REQUIRE(std::system(command.c_str()) == 0);
  std::ifstream file(json);
  return Json::parse(file);
}

/// Plays the events of a device back and compares with the plan's count at every change.
void check_device(const Json& events, const TraceIndex& index, int track) {
  std::map<std::int64_t, std::int64_t> live;
  std::int64_t held = 0;
  std::int64_t peak = 0;
  std::int64_t time = 0;
  CHECK(events[0]["action"] == "segment_alloc");
  CHECK(events[0]["category"] == "unknown");
  const std::int64_t first = events[0]["addr"];
  const std::int64_t size = events[0]["size"];
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Json& event = events[i];
    const std::int64_t address = event["addr"];
    const std::int64_t bytes = event["size"];
    CHECK(event["time_us"].get<std::int64_t>() >= time);
    time = event["time_us"];
    if (event["action"] == "alloc") {
      const auto next = live.lower_bound(address);
      CHECK((next == live.end() || address + bytes <= next->first));
      CHECK((next == live.begin() || std::prev(next)->first + std::prev(next)->second <= address));
      CHECK(address >= first);
      CHECK(address + bytes <= first + size);
      live[address] = bytes;
      held += bytes;
    } else if (event["action"] == "free_completed") {
      CHECK(events[i - 1]["action"] == "free_requested");
      CHECK(live.at(address) == bytes);
      live.erase(address);
      held -= bytes;
    }
    peak = std::max(peak, held);
  }
  std::int64_t expected = 0;
  std::vector<MemorySample> samples = memory_timeline(index, track);
  for (const MemorySample& sample : samples) {
    expected = std::max(expected, total(sample.bytes));
  }
  CHECK(peak == expected);
  CHECK(held == total(samples.back().bytes));
}

TEST_CASE("exports: Python reads the memory snapshot, and its bytes are the plan's") {
  std::mt19937_64 random(test::test_seed() + 2);
  const TemporaryFolder folder;
  std::vector<Run> runs;
  runs.push_back(pipeline_run());
  for (int round = 0; round < test::scaled(5); ++round) {
    runs.push_back(run_of(test::random_scenario(random), random));
  }
  for (const Run& run : runs) {
    const fs::path path = folder.path() / "snapshot.pickle";
    const int last = run.plan.mesh.world_size() - 1;
    write_whole(path,
                {text_of(write_memory_snapshot, run.plan, run.trace, std::vector<int>{0, last})},
                "test");
    const std::optional<Json> snapshot = unpickled(path);
    if (!snapshot) {
      WARN("no python3: the snapshot was not read");
      return;
    }
    const TraceIndex index(run.plan, run.trace.steps[0]);
    const Json& traces = (*snapshot)["device_traces"];
    REQUIRE(traces.size() == (last == 0 ? 1 : 2));
    check_device(traces[0], index, index.step().track_of_rank[0]);
    check_device(traces.back(), index, index.step().track_of_rank.back());
    for (const Json& segment : (*snapshot)["segments"]) {
      std::int64_t sum = 0;
      std::int64_t active = 0;
      for (const Json& block : segment["blocks"]) {
        sum += block["size"].get<std::int64_t>();
        active += block["state"] == "active_allocated" ? block["size"].get<std::int64_t>() : 0;
      }
      CHECK(sum == segment["total_size"]);
      CHECK(active == segment["allocated_size"]);
    }
  }
}

TEST_CASE("exports: tables in CSV and JSON have the trace's own times, row for span") {
  const Run run = pipeline_run();
  const std::string csv = text_of(write_span_csv, run.plan, run.trace, std::vector<int>{});
  const Json json = Json::parse(text_of(write_span_json, run.plan, run.trace, std::vector<int>{}));
  std::size_t spans = 0;
  for (const TraceTrack& track : run.trace.steps[0].tracks) {
    spans += track.spans.size();
  }
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) == spans + 1);
  REQUIRE(json["rows"].size() == spans);
  CHECK(json["columns"].size() == json["rows"][0].size());
  const Span& first = run.trace.steps[0].tracks[0].spans[0];
  CHECK(json["rows"][0][2] == 0);
  CHECK(json["rows"][0][4] == first.operation);
  CHECK(json["rows"][0][14] == first.started);
  CHECK(json["rows"][0][15] == first.ended);
  std::istringstream lines(csv);
  std::string title;
  std::string row;
  std::getline(lines, title);
  std::getline(lines, row);
  CHECK(title.rfind("step,iteration,rank,lane,operation,name,", 0) == 0);
  CHECK(row.size() > 10);
  CHECK(row.rfind(fmt::format("1,{},0,", run.trace.steps[0].iteration), 0) == 0);
  const std::string end = fmt::format(",{},{}", first.started, first.ended);
  CHECK(row.substr(row.size() - end.size()) == end);
}

/// One thing wrong in a trace that passes, by the rule it breaks.
std::map<std::string, std::string> broken(const std::string& whole) {
  const auto with = [&](const std::function<void(Json&)>& change) {
    Json json = Json::parse(whole);
    change(json);
    return json.dump();
  };
  const auto at = [](Json& json, const std::string& phase) -> Json& {
    for (Json& event : json["traceEvents"]) {
      if (event["ph"] == phase) {
        return event;
      }
    }
    throw std::runtime_error("no event " + phase);
  };
  std::map<std::string, std::string> texts;
  for (const auto& wanted : std::vector<std::pair<std::string, std::string>>{{"X", "ts"},
                                                                             {"X", "dur"},
                                                                             {"X", "name"},
                                                                             {"X", "pid"},
                                                                             {"X", "tid"},
                                                                             {"s", "id"},
                                                                             {"s", "cat"},
                                                                             {"s", "ts"},
                                                                             {"f", "bp"},
                                                                             {"C", "args"},
                                                                             {"M", "args"},
                                                                             {"M", "name"}}) {
    texts[wanted.first + " without " + wanted.second] =
        with([&](Json& json) { at(json, wanted.first).erase(wanted.second); });
  }
  texts["no events"] = with([](Json& json) { json.erase("traceEvents"); });
  texts["cut"] = whole.substr(0, whole.size() - 10);
  texts["tid 0"] = with([&](Json& json) { at(json, "X")["tid"] = 0; });
  texts["pid beyond 32 bits"] = with([&](Json& json) { at(json, "X")["pid"] = 1LL << 32; });
  texts["negative pid"] = with([&](Json& json) { at(json, "X")["pid"] = -1; });
  texts["negative time"] = with([&](Json& json) { at(json, "X")["ts"] = -1; });
  texts["counter of text"] = with([&](Json& json) { at(json, "C")["args"]["gradient"] = "much"; });
  texts["args in a list"] = with([&](Json& json) { at(json, "X")["args"] = Json::array(); });
  texts["flow to nowhere"] = with([&](Json& json) { at(json, "f")["id"] = 1; });
  texts["flow outside of slices"] = with([&](Json& json) { at(json, "s")["ts"] = 1e12; });
  texts["overlap"] = with([&](Json& json) {
    Json second = at(json, "X");
    second["ts"] = second["ts"].get<double>() + second["dur"].get<double>() / 2;
    second["dur"] = second["dur"].get<double>() * 2;
    json["traceEvents"].push_back(second);
  });
  texts["control byte"] = whole;
  texts["control byte"].insert(whole.find("\"name\":\"") + 8, "\x01");
  texts["thread without a name"] = with([&](Json& json) { at(json, "X")["tid"] = 4711; });
  texts["unknown phase"] = with([&](Json& json) { at(json, "X")["ph"] = "Z"; });
  return texts;
}

TEST_CASE("exports: every kind of damage to an export is found by the checker") {
  const Run run = pipeline_run();
  const std::string whole = text_of(write_chrome_trace, run.plan, run.trace, ChromeTraceOptions{});
  REQUIRE(test::check_chrome_trace(whole).problems.empty());
  for (const auto& [what, text] : broken(whole)) {
    INFO(what);
    CHECK_FALSE(test::check_chrome_trace(text).problems.empty());
  }
}

TEST_CASE("exports: a file that was not finished is not left behind") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.json";
  {
    WholeFile file(path, "test");
    file.write("half");
  }
  CHECK(fs::is_empty(folder.path()));
  WholeFile file(path, "test");
  file.write("whole");
  CHECK_FALSE(fs::exists(path));
  file.keep();
  CHECK(read_whole(path, "test") == "whole");
  CHECK_THROWS_AS(WholeFile(folder.path() / "none" / "a", "test"), NotSupportedError);
}

}  // namespace
}  // namespace lockstep
