// `lockstep plan`: listing, traffic and schedules against hand-computed numbers.
#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;
using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using lockstep::test::TemporaryFile;
using Json = nlohmann::json;

namespace {

Json plan(const std::string& arguments) {
  const ProgramResult result = run_program("plan --json " + arguments);
  INFO(arguments << "\n" << result.err);
  REQUIRE(result.code == 0);
  return Json::parse(result.out);
}

std::int64_t sent(const Json& plan, const char* group, const char* kind, const char* field) {
  double sum = 0;
  for (const Json& row : plan["messages"]) {
    if (row["group"] == group && row["kind"] == kind && row["control"] == false) {
      sum += row[field].get<double>();
    }
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace

TEST_CASE("plan: DDP sends each gradient once, twice (n-1)/n of it by a ring") {
  const Json it = plan("--model mlp-tiny --precision fp32 --strategy ddp --dp 4");
  const std::int64_t gradients = 4 * 26122;
  CHECK(sent(it, "dp", "all_reduce", "bytes") == gradients);
  CHECK(sent(it, "dp", "all_reduce", "sent_bytes_per_rank") == gradients * 3 / 2);
  CHECK(it["ranks_like_this"] == Json({0, 1, 2, 3}));
}

TEST_CASE("plan: FSDP gathers blocks twice, the root once, and reduces all once") {
  // Shards of 4 divide every dimension of llama-tiny but the vocabulary of 257 rows: 260 with
  // padding, in the embedding and in the head.
  const std::int64_t root = 2 * 260 * 96 + 96;
  const std::int64_t blocks = 443424 - (2 * 257 * 96 + 96);
  const Json it = plan("--model llama-tiny --strategy fsdp --dp 4");
  CHECK(sent(it, "dp", "all_gather", "bytes") == 2 * (2 * blocks + root));
  CHECK(sent(it, "dp", "reduce_scatter", "bytes") == 4 * (blocks + root));
  CHECK(sent(it, "dp", "all_gather", "sent_bytes_per_rank") == 2 * (2 * blocks + root) * 3 / 4);
}

TEST_CASE("plan: a pipeline stage sends one activation per micro-batch") {
  const Json it = plan("--model gpt2-tiny --pp 4 --accumulate 8 --rank 1");
  const std::int64_t message = 128 * 64 * 2;                  // tokens x hidden x bf16
  CHECK(sent(it, "pp", "send", "bytes") == 2 * 8 * message);  // forward and backward
  CHECK(it["ranks_like_this"] == Json({1}));
}

TEST_CASE("plan: bubbles under unit costs are the published ones") {
  const auto bubble = [](const std::string& schedule) {
    return run_program(
               "plan --model gpt2-tiny --set model.layers=8 --pp 4 --accumulate 8 "
               "--summary --schedule " +
               schedule)
        .out;
  };
  CHECK_THAT(bubble("1f1b"), ContainsSubstring("bubble 27.27 %"));
  CHECK_THAT(bubble("gpipe"), ContainsSubstring("bubble 27.27 %"));
  CHECK_THAT(bubble("zb-h1"), ContainsSubstring("bubble 11.11 %"));
  CHECK_THAT(bubble("interleaved --chunks 2"), ContainsSubstring("bubble 15.79 %"));
}

TEST_CASE("plan: memory ends a steady step as it began") {
  const Json it = plan("--model gpt2-tiny --strategy zero2 --dp 2 --iteration 3");
  std::int64_t held = 0;
  for (const Json& op : it["operations"]) {
    if (op["kind"] == "alloc") {
      held += op["bytes"].get<std::int64_t>();
    } else if (op["kind"] == "free") {
      held -= op["bytes"].get<std::int64_t>();
    }
  }
  CHECK(held == 0);
  CHECK(it["operations"].back()["held_bytes"].get<std::int64_t>() > 0);
}

TEST_CASE("plan: iterations of DDP differ until the buckets are rebuilt") {
  const auto section = [](const char* flags) {
    return plan(std::string("--model mlp-tiny --strategy ddp --dp 2 ") + flags)["section"]
        .get<std::string>();
  };
  CHECK(section("--iteration 1") == "step[0]");
  CHECK(section("--iteration 2") == "step[1]");
  CHECK(section("--iteration 9") == section(""));
  CHECK(section("--section init") == "init");
}

TEST_CASE("plan: CSV has one line per operation and as many cells in each") {
  const ProgramResult csv = run_program("plan --model llama-tiny --strategy fsdp --dp 2 --csv");
  std::istringstream text(csv.out);
  std::string line;
  std::getline(text, line);
  const auto commas = std::count(line.begin(), line.end(), ',');
  std::int64_t count = 0;
  while (std::getline(text, line)) {
    CHECK(std::count(line.begin(), line.end(), ',') == commas);
    CHECK(line.rfind(std::to_string(count) + ",", 0) == 0);
    ++count;
  }
  CHECK(count == static_cast<std::int64_t>(
                     plan("--model llama-tiny --strategy fsdp --dp 2")["operations"].size()));
}

TEST_CASE("plan: actions are written as PyTorch writes them, and read back") {
  // torch.distributed.pipelining's own Interleaved1F1B for 2 ranks, 2 chunks, 4 micro-batches.
  const std::string actions =
      "0F0,0F1,2F0,2F1,0F2,2B0,0F3,2B1,2F2,0B0,2F3,0B1,2B2,2B3,0B2,0B3\n"
      "1F0,1F1,3F0,3B0,3F1,3B1,1F2,1B0,1F3,1B1,3F2,3B2,3F3,3B3,1B2,1B3\n";
  const std::string common = "plan --model gpt2-tiny ";
  const ProgramResult made =
      run_program(common + "--pp 2 --chunks 2 --accumulate 4 --schedule interleaved --pytorch-csv");
  CHECK(made.code == 0);
  CHECK(made.out == actions);
  const TemporaryFile file("actions.csv", actions);
  const ProgramResult read =
      run_program(common + "--schedule-csv " + file.path() + " --pytorch-csv");
  CHECK(read.out == actions);
  const ProgramResult lowered =
      run_program(common + "--schedule-csv " + file.path() + " --pytorch-csv compute_comms");
  CHECK_THAT(lowered.out, ContainsSubstring("0F0,0SEND_F0"));
}

TEST_CASE("plan: --check proves plans of every kind") {
  for (const char* arguments :
       {"--model mlp-tiny --strategy ddp --dp 3",
        "--model gpt2-tiny --strategy fsdp --dp 2 --tp 2 --sequence-parallel",
        "--model llama-tiny --strategy zero1 --dp 2 --pp 2 --accumulate 4"}) {
    const ProgramResult check = run_program(std::string("plan --check ") + arguments);
    INFO(arguments << check.out << check.err);
    CHECK(check.code == 0);
    CHECK_THAT(check.out, ContainsSubstring("no problems in"));
    CHECK_THAT(check.out, ContainsSubstring("values agree"));
  }
  const ProgramResult large =
      run_program("plan --check --model llama-3.1-8b --strategy fsdp --dp 512");
  CHECK(large.code == 0);
  CHECK_THAT(large.out, ContainsSubstring("values: not checked"));
}
