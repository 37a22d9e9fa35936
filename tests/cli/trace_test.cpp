// `lockstep trace`: reads what a run left, says what simulate said, and writes what Perfetto reads.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/io/kineto_reader.h"
#include "core/io/trace_io.h"
#include "core/planner/planner.h"
#include "tests/cli/run_program.h"
#include "tests/support/catch.h"
#include "tests/support/chrome_trace_checker.h"
#include "tests/support/hand_traces.h"
#include "tests/support/scenarios.h"

namespace lockstep {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::ProgramResult;
using test::run_program;
using Json = nlohmann::json;

/// A trace of two stages x two replicas with random times, in a file that goes away.
class TraceOnDisk {
 public:
  TraceOnDisk() : file_("trace_test.lstrace", "") {
    Scenario scenario = test::tiny_gpt();
    scenario.strategy.pipeline.degree = 2;
    scenario.strategy.data.kind = DataKind::kDdp;
    scenario.strategy.data.degree = 2;
    scenario.training.accumulate = 3;
    const Scenario done = resolved(scenario);
    const Plan plan = make_plan(done);
    std::mt19937_64 random(1);
    trace_ = test::random_trace(plan, test::steady_section(plan), random);
    trace_.source = TraceSource::kMeasured;
    trace_.facts = {{"backend", "local"}};
    save_trace(file_.path(), done, plan, trace_);
  }
  const std::string& path() const { return file_.path(); }
  const Trace& trace() const { return trace_; }

 private:
  test::TemporaryFile file_;
  Trace trace_;
};

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_CASE("trace: reports the step of the file, with its facts") {
  const TraceOnDisk disk;
  const ProgramResult text = run_program("trace " + disk.path());
  INFO(text.err);
  REQUIRE(text.code == 0);
  CHECK_THAT(text.out, ContainsSubstring("measured step"));
  CHECK_THAT(text.out, ContainsSubstring("backend: local"));
  const ProgramResult run = run_program("trace " + disk.path() + " --json");
  REQUIRE(run.code == 0);
  const Json json = Json::parse(run.out);
  const double step = static_cast<double>(disk.trace().steps[0].end) * 1e-9;
  CHECK(json["step_time_s"].get<double>() == Approx(step));
  CHECK(json["source"] == "measured");
  CHECK(json["facts"]["backend"] == "local");
  REQUIRE(json["time_split"].size() == 4);
  for (const Json& it : json["time_split"]) {
    const double sum = it["compute_s"].get<double>() + it["recompute_s"].get<double>() +
                       it["exposed_s"].get<double>() + it["bubble_s"].get<double>() +
                       it["other_s"].get<double>();
    CHECK(sum == Approx(step));
  }
  const ProgramResult csv = run_program("trace " + disk.path() + " --csv");
  CHECK(std::count(csv.out.begin(), csv.out.end(), '\n') == 5);
}

TEST_CASE("trace: draws chosen ranks only when asked to") {
  const TraceOnDisk disk;
  CHECK(run_program("trace " + disk.path()).out.find("F forward") == std::string::npos);
  const ProgramResult drawn =
      run_program("trace " + disk.path() + " --text --ranks 0,3 --width 80");
  REQUIRE(drawn.code == 0);
  CHECK_THAT(drawn.out, ContainsSubstring("F forward"));
  CHECK_THAT(drawn.out, ContainsSubstring("rank 3 compute"));
  CHECK(drawn.out.find("rank 1 compute") == std::string::npos);
}

TEST_CASE("trace: writes Chrome JSON that passes the checker, whole or not at all") {
  const TraceOnDisk disk;
  const std::string out = disk.path() + ".json";
  const ProgramResult run =
      run_program("trace " + disk.path() + " --chrome " + out + " --ranks 0,2");
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("ui.perfetto.dev"));
  const test::ChromeTraceFacts facts = test::check_chrome_trace(text_of(out));
  CHECK(facts.problems == std::vector<std::string>{});
  CHECK(facts.processes.size() == 2);
  CHECK(facts.flows == 6);
  CHECK_FALSE(std::filesystem::exists(out + ".partial"));
  std::filesystem::remove(out);
  const ProgramResult nowhere = run_program("trace " + disk.path() + " --chrome /nowhere/x.json");
  CHECK(nowhere.code == 7);
  CHECK_THAT(nowhere.err, ContainsSubstring("cannot be written"));
}

TEST_CASE("trace: writes every form where it is told to") {
  const TraceOnDisk disk;
  const std::string base = disk.path();
  const ProgramResult run =
      run_program("trace " + base + " --format kineto " + base + ".d --format memory_viz " + base +
                  ".pickle --format csv " + base + ".csv --format json " + base + ".json");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("pytorch.org/memory_viz"));
  const ImportedTrace trace = import_kineto({base + ".d"});
  CHECK(trace.ranks.size() == 4);
  CHECK(text_of(base + ".pickle").substr(0, 2) == "\x80\x02");
  CHECK(text_of(base + ".csv").rfind("step,", 0) == 0);
  CHECK(Json::parse(text_of(base + ".json"))["rows"].size() > 10);
  for (const char* ending : {".d", ".pickle", ".csv", ".json"}) {
    std::filesystem::remove_all(base + ending);
  }
  const ProgramResult wrong = run_program("trace " + base + " --format cromium x");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, ContainsSubstring("nearest is \"chrome\""));
}

TEST_CASE("trace: refuses wrong files with exit code 3 and wrong flags with 2, in one line") {
  const TraceOnDisk disk;
  const test::TemporaryFile foreign("foreign.json", "{\"traceEvents\": []}");
  const auto check = [](const std::string& arguments, int code, const std::string& message) {
    const ProgramResult run = run_program("trace " + arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring(message));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  };
  check(foreign.path(), 3, "not a Lockstep trace");
  check("/nowhere/x.lstrace", 3, "cannot be read");
  const std::string whole = text_of(disk.path());
  const test::TemporaryFile cut("cut.lstrace", whole.substr(0, whole.size() / 2));
  check(cut.path(), 3, "truncated");
  check(disk.path() + " --ranks 9", 2, "--ranks 9");
  check(disk.path() + " --step 2", 2, "the trace has 1");
  check("", 2, "file");
}

}  // namespace
}  // namespace lockstep
