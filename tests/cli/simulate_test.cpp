// `lockstep simulate`, `compare` and `search`: the contract's fields, invariants between them, and
// what they refuse.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;
using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using Json = nlohmann::json;

namespace {

Json run_json(const std::string& arguments) {
  const ProgramResult result = run_program(arguments + " --json");
  INFO(arguments << "\n" << result.err);
  REQUIRE(result.code == 0);
  return Json::parse(result.out);
}

/// What a simulation says about the plan, without how long it took and how it was folded.
Json times_of_rank(const Json& simulation, int rank) {
  for (const Json& split : simulation["time_split"]) {
    if (split["rank"] <= rank && rank < split["rank"].get<int>() + split["count"].get<int>()) {
      Json times = split;
      times.erase("rank");
      times.erase("count");
      return times;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("simulate: has every field of the contract, and the split of a rank sums to the step") {
  const Json it = run_json(
      "simulate --model gpt2-tiny --strategy zero1 --dp 3 --pp 2 --accumulate 4 --cluster "
      "dgx-a100-80gb");
  for (const char* key : {"schema_version",
                          "step_time_s",
                          "tokens_per_s",
                          "tokens_per_s_per_device",
                          "tflops_per_device",
                          "mfu",
                          "hfu",
                          "bubble_fraction",
                          "exposed_s",
                          "sent_bytes_per_rank",
                          "time_split",
                          "operations",
                          "simulator_wall_s",
                          "memory"}) {
    INFO(key);
    CHECK(it.contains(key));
  }
  REQUIRE(!it["time_split"].empty());
  for (const Json& split : it["time_split"]) {
    double sum = 0;
    for (const char* part : {"compute_s", "recompute_s", "exposed_s", "bubble_s", "other_s"}) {
      sum += split[part].get<double>();
    }
    CHECK(sum == Approx(it["step_time_s"].get<double>()));
  }
  const double tokens = 3 * 4 * 128;
  CHECK(it["tokens_per_s"].get<double>() * it["step_time_s"].get<double>() == Approx(tokens));
  CHECK(it["memory"]["fits"] == true);
}

TEST_CASE("simulate: equal ranks have the times that they have when each is simulated") {
  const std::string what =
      "simulate --model gpt2-tiny --strategy fsdp --dp 5 --precision fp32 --slow-rank 3:1.5";
  const Json folded = run_json(what);
  const Json unfolded = run_json(what + " --unfold");
  CHECK(folded["step_time_s"] == unfolded["step_time_s"]);
  CHECK(unfolded["time_split"].size() == 5);
  CHECK(folded["time_split"].size() < 5);
  CHECK(times_of_rank(folded, 0) == times_of_rank(unfolded, 0));
}

TEST_CASE("simulate: a slow rank delays the step, and the report names it") {
  const std::string what = "simulate --model gpt2 --strategy ddp --dp 4 --no-timeline";
  const double equal = run_json(what)["step_time_s"];
  const double slow = run_json(what + " --slow-rank 2:2")["step_time_s"];
  CHECK(slow > 1.5 * equal);
  const ProgramResult text = run_program(what + " --slow-rank 2:2");
  CHECK_THAT(text.out, ContainsSubstring("for rank 2"));
}

TEST_CASE("simulate: a failed rank ends with the exit code of a timeout and says who waits") {
  const ProgramResult result = run_program(
      "simulate --model gpt2-tiny --strategy ddp --dp 3 --fail-rank 1:0.00001 --timeout 5 "
      "--no-timeline");
  CHECK(result.code == 6);
  CHECK_THAT(result.out, ContainsSubstring("for rank 1"));
}

TEST_CASE("simulate: what-ifs that mean nothing are refused in one line") {
  for (const char* flags : {"--slow-rank x",
                            "--slow-rank 1",
                            "--slow-rank 1:",
                            "--slow-rank 1:nan",
                            "--slow-rank 9:2",
                            "--slow-rank 0:-1",
                            "--slow-rank 0:1e300",
                            "--slow-rank 99999999999999999999:2",
                            "--fail-rank 7:1",
                            "--fail-rank 0:-1",
                            "--jitter 9"}) {
    INFO(flags);
    const ProgramResult result =
        run_program(std::string("simulate --model gpt2-tiny --strategy ddp --dp 2 ") + flags);
    CHECK(result.code == 2);
    CHECK(result.out.empty());
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  }
}

TEST_CASE("compare: all strategies train on the same samples, and text names the fastest") {
  const Json it = run_json("compare --model gpt2 --devices 8 --global-batch 32 --seq-len 512");
  REQUIRE(it["strategies"].size() == 8);
  for (const Json& row : it["strategies"]) {
    INFO(row.dump());
    REQUIRE(!row.contains("refused"));
    CHECK(row["tokens_per_s"].get<double>() * row["step_time_s"].get<double>() ==
          Approx(32.0 * 512));
    CHECK(row["fits"] == true);
  }
  const ProgramResult text = run_program("compare --model gpt2 --devices 8 --seq-len 512");
  CHECK_THAT(text.out, ContainsSubstring("fastest that fits: "));
}

TEST_CASE("compare: one thread and three print the same bytes") {
  const std::string what =
      "compare --model gpt2-tiny --devices 6 ddp fsdp zero1,tp=2 ddp,pp=2 --csv";
  const ProgramResult one = run_program(what + " --threads 1");
  const ProgramResult three = run_program(what + " --threads 3");
  REQUIRE(one.code == 0);
  CHECK(one.out == three.out);
}

TEST_CASE("compare: an illegal strategy is a row with its reason, a meaningless word an error") {
  const Json it = run_json("compare --model gpt2 --devices 4 ddp ddp,tp=5");
  CHECK(it["strategies"][1].contains("refused"));
  CHECK(!it["strategies"][0].contains("refused"));
  const ProgramResult word = run_program("compare --model gpt2 --devices 4 fastest");
  CHECK(word.code == 2);
  CHECK_THAT(word.err, ContainsSubstring("fastest"));
}

TEST_CASE("compare: a row is what simulate says of that strategy") {
  const Json row =
      run_json("compare --model gpt2 --devices 6 --global-batch 12 fsdp")["strategies"][0];
  const Json it = run_json("simulate --model gpt2 --strategy fsdp --dp 6 --global-batch 12");
  CHECK(row["step_time_s"] == it["step_time_s"]);
  CHECK(row["mfu"] == it["mfu"]);
}

TEST_CASE("search: every layout is feasible or rejected, and the best one simulates as printed") {
  const Json it = run_json(
      "search --model llama-3.2-1b --devices 6 --global-batch 24 --seq-len 2048 --top 3 --threads "
      "2");
  std::int64_t rejected = 0;
  for (const auto& [reason, count] : it["rejected"].items()) {
    rejected += count.get<std::int64_t>();
  }
  CHECK(it["feasible"].get<std::int64_t>() + rejected == it["candidates"].get<std::int64_t>());
  REQUIRE(it["best"].size() == 3);
  const Json& best = it["best"][0];
  const Json row =
      run_json("compare --model llama-3.2-1b --devices 6 --global-batch 24 --seq-len 2048 " +
               best["strategy"].get<std::string>())["strategies"][0];
  CHECK(row["step_time_s"].get<double>() == Approx(best["step_time_s"].get<double>()));
}
