// lockstep collective: one collective, carried out and drawn.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

namespace lockstep {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::ProgramResult;
using test::run_program;
using Json = nlohmann::json;

TEST_CASE("collective: draws every step and says that the sums are complete") {
  const ProgramResult run = run_program("collective --ranks 5 --algorithm ring --bytes 100");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("5 ranks, 5 chunks: 8 steps"));
  CHECK_THAT(run.out, ContainsSubstring("step 7"));
  CHECK_THAT(run.out, ContainsSubstring("every rank ends with all"));
}

TEST_CASE("collective: JSON holds every move, and is what the file holds") {
  const std::string out = "collective_test_moves.json";
  const ProgramResult run = run_program("collective --ranks 4 --bytes 400 --json --out " + out);
  REQUIRE(run.code == 0);
  const Json json = Json::parse(run.out);
  CHECK(json["schema_version"] == 1);
  CHECK(json["message_bytes"] == 400);
  CHECK(json["time_ns"].get<std::int64_t>() > 0);
  REQUIRE(json["moves"].size() == 24);  // 4 ranks, 2 x 3 steps
  std::int64_t sent = 0;
  for (const Json& move : json["moves"]) {
    sent += move["src"] == 2 ? move["bytes"].get<std::int64_t>() : 0;
    CHECK(move["reduces"] == (move["step"] < 3));
  }
  CHECK(sent == 2 * 400 * 3 / 4);
  std::ifstream file(out);
  std::ostringstream text;
  text << file.rdbuf();
  CHECK(text.str() == run.out);
  std::filesystem::remove(out);
}

TEST_CASE("collective: odd sizes, one rank and every kind come out right") {
  for (const char* arguments : {"--ranks 1",
                                "--ranks 16 --bytes 4",
                                "--ranks 7 --algorithm direct --bytes 1000",
                                "--ranks 3 --kind broadcast --root 2",
                                "--ranks 6 --kind reduce --algorithm direct",
                                "--ranks 5 --kind reduce_scatter --bytes 44 --dtype bf16",
                                "--ranks 3 --kind all_gather --bytes 64 --dtype fp64"}) {
    const ProgramResult run = run_program(std::string("collective ") + arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.code == 0);
    CHECK_THAT(run.out, ContainsSubstring("every rank ends with all"));
  }
}

TEST_CASE("collective: refuses wrong flags with exit code 2 in one line") {
  const auto check = [](const std::string& arguments, int code, const std::string& message) {
    const ProgramResult run = run_program("collective " + arguments);
    INFO(arguments << "\n" << run.err);
    CHECK(run.code == code);
    CHECK(run.out.empty());
    CHECK_THAT(run.err, ContainsSubstring(message));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  };
  check("--ranks 17", 2, "--ranks");
  check("--ranks 0", 2, "--ranks");
  check("--bytes 3", 2, "no whole number of fp32");
  check("--bytes 0", 2, "--bytes");
  check("--bytes 1000000000", 2, "--bytes");
  check("--kind all_reduces", 2, "nearest is \"all_reduce\"");
  check("--algorithm star", 2, "ring");
  check("--dtype int8", 2, "--dtype");
  check("--kind all_gather --algorithm tree", 2, "a tree cannot carry out all_gather");
  check("--kind broadcast --root 4", 2, "--root 4");
  check("--out /nowhere/x.json", 7, "/nowhere/x.json");
}

}  // namespace
}  // namespace lockstep
