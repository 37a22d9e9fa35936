// `lockstep calibrate` and `compare --run`: files, the contract's fields, and what they refuse.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "core/io/cluster_io.h"
#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using Json = nlohmann::json;

namespace {

const char* const kSmall = "--seq-len 16 --micro-batch 2 --steps 3";

}  // namespace

TEST_CASE("calibrate: writes a cluster file with sources that compare --run reads") {
  const lockstep::test::TemporaryFile file("calibrated.json", "");
  const ProgramResult made = run_program("calibrate --ranks 3 --json --out " + file.path());
  INFO(made.err);
  REQUIRE(made.code == 0);
  const Json it = Json::parse(made.out);
  CHECK(it["products"].size() >= 6);
  CHECK(it["transfers"].size() == 10);  // two sizes: two collectives by 2 and 3 ranks, and messages
  const lockstep::ClusterSpec cluster = lockstep::load_cluster(file.path());
  CHECK(cluster.device.launch_overhead_s == Approx(it["launch_overhead_s"].get<double>()));
  CHECK_FALSE(cluster.sources.empty());
  CHECK(run_program(std::string("compare --run --strategy fsdp --dp 3 --cluster ") + file.path() +
                    " " + kSmall)
            .code == 0);
}

TEST_CASE("calibrate: a place that cannot be written and a single rank are refused") {
  CHECK(run_program("calibrate --ranks 1").code == 2);
  CHECK(run_program("calibrate --out /nowhere/at/all.json").code != 0);
}

TEST_CASE("compare --run: one scenario has every field of the contract") {
  for (const char* ranks :
       {"--strategy ddp --dp 2", "--strategy zero2 --dp 3", "--pp 2 --dp 1 --accumulate 2"}) {
    const ProgramResult result =
        run_program(std::string("compare --run --json --strict ") + kSmall + " " + ranks);
    INFO(ranks << "\n" << result.err);
    REQUIRE(result.code == 0);
    const Json it = Json::parse(result.out);
    CHECK(it["collectives_match"] == true);
    REQUIRE(!it["operations"].empty());
    for (const char* key : {"rank", "index", "kind", "predicted_s", "measured_s"}) {
      CHECK(it["operations"][0].contains(key));
    }
    for (const auto& [category, bytes] : it["memory"].items()) {
      INFO(category);
      CHECK(bytes["planned"] == bytes["measured"]);
    }
    const double predicted = it["step_time"]["predicted_s"];
    const double measured = it["step_time"]["measured_s"];
    CHECK(it["step_time"]["error"].get<double>() == Approx((predicted - measured) / measured));
  }
}

TEST_CASE("compare --run: several strategies are a list, and one that cannot be is a reason") {
  const ProgramResult result =
      run_program(std::string("compare --run --json ddp ddp,tp=3 ") + kSmall);
  REQUIRE(result.code == 0);
  const Json it = Json::parse(result.out);
  REQUIRE(it["strategies"].size() == 2);
  CHECK(it["strategies"][0]["collectives_match"] == true);
  CHECK(it["strategies"][1].contains("refused"));
}

TEST_CASE("compare --run: what has no kernels, a bad cluster file and --csv are refused") {
  CHECK(run_program("compare --run --strategy ddp --dp 2 --precision bf16").code == 7);
  const lockstep::test::TemporaryFile file("bad_cluster.json", "{\"nodes\": \"many\"}");
  CHECK(run_program("compare --run --strategy ddp --dp 2 --cluster " + file.path()).code == 3);
  CHECK(run_program("compare --run --csv").code == 2);
  CHECK(run_program("compare --steps 3 --model gpt2").code == 2);
}
