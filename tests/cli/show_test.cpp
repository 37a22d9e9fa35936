// `lockstep show`: views of a step in text and JSON, with the figures of simulate and compare.
#include <cmath>

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
  for (const char* view : {"timeline", "buckets", "shards", "memory", "budget"}) {
    INFO(view);
    const std::string arguments = std::string(view) + " --strategy fsdp --dp 2 --at 0.1" + kModel;
    CHECK(run_program("show " + arguments).code == 0);
    const auto json = run_program("show --json " + arguments);
    CHECK(json.code == 0);
    CHECK(Json::parse(json.out)["view"] == view);
  }
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
