// `lockstep validate`: the contract's fields, marks of rows beyond the rule, refusals and exit
// codes.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;
using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using lockstep::test::TemporaryFile;
using Json = nlohmann::json;

namespace {

const std::string kHeader =
    "id,source_repo_or_paper,hardware,gpus,gpus_per_node,layers,hidden,ffn,heads,kv_heads,vocab,"
    "seq_len,global_batch_seqs,micro_batch,dp,tp,sp,pp,vpp,cp,ep,sharding,precision,recompute,"
    "attention_impl,metric_step_time_s,metric_tokens_per_s_per_gpu\n";
const std::string kRow =
    "one,s,A100-SXM-80GB,8,8,12,768,3072,12,12,50304,1024,64,8,8,1,0,1,1,1,1,ddp,bf16,none,flash2,"
    "0.2,40960\n";
const std::string kBeyond =
    "two,s,A100-SXM-80GB,8,8,12,768,3072,12,12,50304,1024,64,8,8,1,0,1,1,1,1,ddp,bf16,,flash2,0.2,"
    "40960\n";

}  // namespace

TEST_CASE("validate: JSON has rows, refused rows and a summary, and errors are relative") {
  const TemporaryFile file("runs.csv", kHeader + kRow + kBeyond);
  const ProgramResult result = run_program("validate " + file.path() + " --json");
  INFO(result.err);
  REQUIRE(result.code == 0);
  const Json it = Json::parse(result.out);
  REQUIRE(it["rows"].size() == 2);
  for (const Json& row : it["rows"]) {
    const double measured = row["measured"];
    CHECK(row["error"].get<double>() ==
          Approx((row["predicted"].get<double>() - measured) / measured));
    CHECK(row["id"] == "one");
    CHECK(row["regime"].get<std::string>().find("ddp") != std::string::npos);
  }
  CHECK(it["rows"][0]["metric"] == "step_time");
  CHECK(it["rows"][1]["metric"] == "tokens_per_s");
  REQUIRE(it["refused"].size() == 1);
  CHECK(it["refused"][0]["reason"] == "recompute is not printed");
  CHECK(it["summary"]["step_time"]["rows"] == 1);
}

TEST_CASE("validate: --all predicts rows beyond the rule and marks them") {
  const TemporaryFile file("runs.csv", kHeader + kRow + kBeyond);
  const ProgramResult result = run_program("validate " + file.path() + " --all --json");
  REQUIRE(result.code == 0);
  const Json it = Json::parse(result.out);
  REQUIRE(it["rows"].size() == 4);
  CHECK(it["rows"][2]["id"] == "two");
  CHECK(it["rows"][2]["selected"] == false);
  CHECK(it["rows"][2]["left_out"] == "recompute is not printed");
  CHECK(it["summary"]["step_time"]["rows"] == 1);
  CHECK(it["summary"]["step_time"]["left_out"]["rows"] == 1);
  CHECK(it["summary"]["step_time"]["by_reason"][0]["name"] == "recompute is not printed");
  const ProgramResult text = run_program("validate " + file.path() + " --all");
  CHECK_THAT(text.out,
             ContainsSubstring("step_time of rows that the rule leaves out, not counted above: 1"));
}

TEST_CASE("validate: bad files end with one line that names the place, and code 3") {
  struct Case {
    std::string text;
    std::string says;
  };
  std::string broken = kRow;
  broken.replace(broken.find("768"), 3, "7e");
  for (const Case& it : {Case{kHeader + broken, "runs.csv:2: "},
                         Case{kHeader + "one,two\n", "runs.csv:2: "},
                         Case{"a,b\n1,2\n", "runs.csv:1: no table of runs"},
                         Case{"", "runs.csv:1: no header"}}) {
    const TemporaryFile file("runs.csv", it.text);
    const ProgramResult result = run_program("validate " + file.path());
    INFO(result.err);
    CHECK(result.code == 3);
    CHECK_THAT(result.err, ContainsSubstring(it.says));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(result.out.empty());
  }
  CHECK(run_program("validate /nonexistent/runs.csv").code == 3);
}

TEST_CASE("validate: one thread and two print the same bytes") {
  const TemporaryFile file("runs.csv", kHeader + kRow + kBeyond);
  const std::string command = "validate " + file.path() + " --all --csv --threads ";
  CHECK(run_program(command + "1").out == run_program(command + "2").out);
}
