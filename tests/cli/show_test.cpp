// `lockstep show`: views of a step in text and JSON, with the figures of simulate and compare.
#include <cmath>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

namespace lockstep {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::run_program;
using Json = nlohmann::json;

const std::string kModel = " --model gpt2-tiny --seq-len 64 ";

TEST_CASE("show: the exposed time of DDP's buckets is what simulate says") {
  const Json shown =
      Json::parse(run_program("show buckets --json --strategy ddp --dp 4" + kModel).out);
  const Json simulated =
      Json::parse(run_program("simulate --json --strategy ddp --dp 4" + kModel).out);
  CHECK(shown["schema_version"] == 1);
  CHECK(std::llround(simulated["step_time_s"].get<double>() * 1e9) == shown["step_time_ns"]);
  CHECK(std::llround(simulated["exposed_s"]["dp"].get<double>() * 1e9) == shown["exposed_ns"]);
  CHECK(shown["sent_bytes"].get<double>() ==
        Approx(simulated["sent_bytes_per_rank"]["dp"]["all_reduce"].get<double>()));
}

TEST_CASE("show: the budget's rows are those of compare") {
  const std::string flags = kModel + "--cluster dgx-h100 --global-batch 32 ";
  const Json shown = Json::parse(run_program("show budget --json" + flags).out);
  const Json compared = Json::parse(run_program("compare --json" + flags).out);
  REQUIRE(shown["strategies"].size() == compared["strategies"].size());
  for (std::size_t i = 0; i < compared["strategies"].size(); ++i) {
    const Json& row = compared["strategies"][i];
    for (const char* key : {"strategy", "fits", "peak_bytes", "step_time_s", "bubble_fraction"}) {
      INFO(key);
      CHECK(shown["strategies"][i][key] == row[key]);
    }
  }
}

TEST_CASE("show: every view is drawn in text and as JSON") {
  for (const char* view : {"timeline", "buckets", "shards", "pipeline", "memory", "budget"}) {
    INFO(view);
    const std::string arguments = std::string(view) + " --strategy fsdp --dp 2 --at 0.1" + kModel;
    CHECK(run_program("show " + arguments).code == 0);
    const auto json = run_program("show --json " + arguments);
    CHECK(json.code == 0);
    CHECK(Json::parse(json.out)["view"] == view);
  }
}

TEST_CASE("show: the critical path of the timeline adds up to the step, in pieces and in shares") {
  for (const std::string strategy : {"--strategy ddp --dp 4", "--pp 2 --accumulate 4"}) {
    INFO(strategy);
    const Json shown = Json::parse(run_program("show timeline --json " + strategy + kModel).out);
    const Json& path = shown["critical_path"];
    std::int64_t shares = 0;
    for (const Json& share : path["shares"]) {
      shares += share["time_ns"].get<std::int64_t>();
    }
    CHECK(shares == shown["step_time_ns"]);
    std::int64_t end = 0;
    for (const Json& piece : path["pieces"]) {
      CHECK(piece["begin_ns"] == end);
      end = piece["end_ns"];
    }
    CHECK(end == shown["step_time_ns"]);
    const auto text = run_program("show timeline " + strategy + kModel);
    CHECK_THAT(text.out, ContainsSubstring("critical path: what the step's "));
  }
}

TEST_CASE(
    "show: a pipeline in unit time has the bubble of the textbook, a real one that of simulate") {
  const std::string flags = "--pp 4 --schedule 1f1b --accumulate 8" + kModel;
  const Json shown = Json::parse(run_program("show pipeline --json " + flags).out);
  // (P-1) / (M + P-1), Megatron-LM's 1F1B.
  CHECK(shown["unit_time"]["bubble"].get<double>() == Approx(3.0 / 11));
  CHECK(shown["formula"]["fraction"].get<double>() == Approx(3.0 / 11));
  CHECK(shown["step"]["rows"].size() == 4);
  for (const Json& row : shown["step"]["rows"]) {
    CHECK(row["cells"].size() == 16);
    CHECK(row["peak_live"] == 4 - row["coordinate"].get<int>());
  }
  const auto text = run_program("show pipeline --width 120 " + flags);
  CHECK_THAT(text.out, ContainsSubstring("1f1b: (P-1) / (M + P-1) = 3 / (8 + 3) = 27.3 %"));
}

TEST_CASE("show: the steps of a recorded ring send 2(N-1)/N of the message on every rank") {
  const test::TemporaryFile file("moves.json", "");
  REQUIRE(run_program("collective --ranks 4 --bytes 400 --out " + file.path()).code == 0);
  const Json shown = Json::parse(run_program("show steps --json " + file.path()).out);
  CHECK(shown["steps"].size() == 6);
  CHECK(shown["phases"] == Json({0, 3}));
  for (const Json& rank : shown["totals"]) {
    CHECK(rank["sent_bytes"] == 600);
  }
  CHECK_THAT(run_program("show steps " + file.path()).out,
             ContainsSubstring("all_reduce of 400 B fp32, ring, 4 ranks"));
  CHECK(run_program("show steps").code == 2);
  const test::TemporaryFile other("other.json", "{}");
  CHECK(run_program("show steps " + other.path()).code == 3);
}

TEST_CASE("show: two traces are compared, and their lengths are those that simulate gives") {
  const test::TemporaryFile a("a.lstrace", "");
  const test::TemporaryFile b("b.lstrace", "");
  const std::string ddp = "simulate --strategy ddp --dp 2 --json --trace " + a.path() + kModel;
  const std::string fsdp = "simulate --strategy fsdp --dp 2 --json --trace " + b.path() + kModel;
  const Json a_report = Json::parse(run_program(ddp).out);
  const Json b_report = Json::parse(run_program(fsdp).out);
  const Json shown =
      Json::parse(run_program("show compare --json " + a.path() + " " + b.path()).out);
  CHECK(shown["same_plan"] == false);
  CHECK(shown["a_ns"] == std::llround(a_report["step_time_s"].get<double>() * 1e9));
  CHECK(shown["b_ns"] == std::llround(b_report["step_time_s"].get<double>() * 1e9));
  double a_sum = 0;
  for (const Json& part : shown["split"]) {
    a_sum += part["a_ns"].get<double>();
  }
  CHECK(a_sum == Approx(shown["a_ns"].get<double>()));
  CHECK(run_program("show compare " + a.path() + " " + b.path()).code == 0);
  CHECK(run_program("show compare " + a.path()).code == 2);
  CHECK(run_program("show timeline " + a.path() + " " + b.path()).code == 2);
}

TEST_CASE("show: the timeline is written as an SVG picture, no other view is") {
  const test::TemporaryFile file("step.svg", "");
  CHECK(run_program("show timeline --strategy ddp --dp 2 --svg " + file.path() + kModel).code == 0);
  std::ifstream written(file.path());
  const std::string text{std::istreambuf_iterator<char>(written), {}};
  CHECK_THAT(text, ContainsSubstring("<svg ") && ContainsSubstring("</svg>"));
  CHECK(run_program("show memory --svg " + file.path() + kModel).code == 2);
}

TEST_CASE("show: flags of a scenario say nothing beside a file, and are refused") {
  const auto result = run_program("show memory somewhere.lstrace --model gpt2");
  CHECK(result.code == 2);
  CHECK_THAT(result.err, ContainsSubstring("says which scenario it is of"));
}

TEST_CASE("show: what is wrong on the command line is a usage error, a missing file a bad input") {
  CHECK(run_program("show bucket" + kModel).code == 2);
  CHECK_THAT(run_program("show bucket" + kModel).err, ContainsSubstring("nearest is buckets"));
  CHECK(run_program("show").code == 2);
  CHECK(run_program("show memory --ranks 9" + kModel).code == 2);
  CHECK(run_program("show memory /nowhere.lstrace").code == 3);
}

}  // namespace
}  // namespace lockstep
