// What every command promises to scripts: exit code, one line on stderr, nothing mixed into stdout.
#include <algorithm>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"

using Catch::Matchers::ContainsSubstring;
using lockstep::test::interrupt_program;
using lockstep::test::ProgramResult;
using lockstep::test::run_program;
using lockstep::test::TemporaryFile;

namespace {

void check_refusal(const std::string& arguments, int code, const std::string& reason) {
  INFO("lockstep " << arguments);
  const ProgramResult result = run_program(arguments);
  CHECK(result.code == code);
  CHECK(result.out == "");
  CHECK(result.err.rfind("lockstep: ", 0) == 0);
  CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
  CHECK_THAT(result.err, ContainsSubstring(reason));
}

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("commands: a wrong command line ends with 2 and says what is nearest") {
  check_refusal("", 2, "no command; see lockstep --help");
  check_refusal("memry --model gpt2", 2, "unknown command memry, nearest is memory");
  check_refusal("--verison", 2, "unknown flag --verison, nearest is --version");
  check_refusal("memory --modle gpt2", 2, "nearest is --model; see lockstep memory --help");
  check_refusal("memory --model gpt2 --dpp=4", 2, "unknown flag --dpp, nearest is --dp");
  check_refusal("memory --model gpt2 twice", 2, "\"twice\" means nothing here");
  check_refusal("memory --model gpt2 --dp", 2, "--dp");
  check_refusal("memory", 2, "no model");
  check_refusal("memory --model gpt22", 2, "nearest is \"gpt2\"");
  check_refusal("memory --model gpt2 --cluster dgx-h10", 2, "nearest is \"dgx-h100\"");
  check_refusal("memory --model gpt2 --strategy zero4", 2, "nearest is \"zero1\"");
  check_refusal("memory --model gpt2 --set training.seq_length=8", 2, "training.seq_len");
  check_refusal("memory --model gpt2 --set training.seq_len", 2, "is not KEY=VALUE");
  check_refusal("memory --model gpt2 --dp x", 2, "must be a whole number");
  check_refusal("memory --model gpt2 --dp=-3", 2, "must be from 1");
  check_refusal("memory --model gpt2 --tp 5", 2, "must divide model.heads");
  check_refusal("memory --model gpt2 --json --csv", 2, "excludes");
  check_refusal("memory --model gpt2 --accumulate 2 --global-batch 2", 2, "excludes");
  check_refusal("plan --model gpt2-tiny --rank 1", 2, "--rank 1 is not a rank: there are 1");
  check_refusal("plan --model gpt2-tiny --section steps", 2, "nearest is \"step\"");
  check_refusal("plan --model gpt2-tiny --iteration 0", 2, "--iteration");
  check_refusal("plan --model gpt2-tiny --pytorch-csv", 2, "give --pp");
  check_refusal("models gpt22", 2, "nearest is \"gpt2\"");
  check_refusal("clusters dgx", 2, "nearest is");
}

TEST_CASE("commands: a bad file ends with 3 and names the place") {
  check_refusal("memory --scenario tests/corpus/scenario/truncated.json",
                3,
                "tests/corpus/scenario/truncated.json:");
  check_refusal("memory --scenario /no/such/file.json", 3, "/no/such/file.json");
  check_refusal("memory --scenario tests/corpus", 3, "tests/corpus");
  check_refusal("memory --config tests/corpus/hf_config/zero_heads.json", 3, "zero_heads.json");
  check_refusal(
      "memory --model gpt2 --cluster tests/corpus/cluster/truncated.json", 3, "truncated.json");
  check_refusal("models --config tests/corpus/hf_config/truncated.json", 3, "truncated.json");
  const TemporaryFile actions("actions.csv", "0F0,0B0\n1F0,1X0\n");
  check_refusal("memory --model gpt2-tiny --schedule-csv " + actions.path(), 3, ":2:2: ");
  const TemporaryFile scenario("scenario.json", R"({"model": "gpt2",
      "strategy": {"tensor": {"degree": 5}}})");
  check_refusal("memory --scenario " + scenario.path(), 3, "must divide model.heads");
}

TEST_CASE("commands: a plan beyond the limit is refused with 7 and what to reduce") {
  check_refusal("plan --model llama-3.1-405b --accumulate 30000", 7, "operations");
}

TEST_CASE("commands: help begins with three examples, and there is a version") {
  for (const char* command : {"", "memory", "plan", "models", "clusters", "doctor"}) {
    const ProgramResult help = run_program(std::string(command) + " --help");
    INFO(command);
    CHECK(help.code == 0);
    CHECK(help.err == "");
    const std::string start = std::string("\n  lockstep ") + command;
    std::size_t examples = 0;
    for (std::size_t at = help.out.find(start); at < help.out.find("Usage:");
         at = help.out.find(start, at + 1)) {
      ++examples;
    }
    CHECK(examples == 3);
  }
  const ProgramResult version = run_program("--version");
  CHECK(version.code == 0);
  CHECK(version.out.rfind("lockstep ", 0) == 0);
}

TEST_CASE("commands: every key that --set reaches is listed") {
  const ProgramResult keys = run_program("memory --list-keys");
  CHECK(keys.code == 0);
  for (const char* key : {"training.seq_len", "strategy.data.replicate", "cluster.nodes"}) {
    CHECK_THAT(keys.out, ContainsSubstring(key));
  }
}

TEST_CASE("commands: presets have the published parameter counts") {
  const ProgramResult models = run_program("models --csv");
  CHECK(models.code == 0);
  for (const char* row : {"gpt2,124439808,",
                          "gpt2-xl,1557611200,",
                          "llama-2-7b,6738415616,",
                          "llama-3.1-405b,405853388800,",
                          "mistral-7b,7241732096,",
                          "mixtral-8x7b,46702792704,",
                          "qwen2.5-0.5b,494032768,",
                          "qwen3-8b,8190735360,"}) {
    CHECK_THAT(models.out, ContainsSubstring(row));
  }
  // GPT-2: 2304 x 768 weights and 2304 biases in each of 12 layers.
  const ProgramResult gpt2 = run_program("models gpt2 --csv");
  CHECK_THAT(gpt2.out, ContainsSubstring("h.*.attn.qkv,linear,12,1771776,"));
  CHECK_THAT(run_program("models gpt2").out, ContainsSubstring("124,439,808 parameters"));
}

TEST_CASE("commands: a cluster that was written is a cluster that can be read") {
  const ProgramResult cluster = run_program("clusters h200 --json");
  CHECK(cluster.code == 0);
  const TemporaryFile file("cluster.json", cluster.out);
  const std::string command = "memory --model gpt2 --strategy ddp --dp 8 --cluster ";
  CHECK(run_program(command + file.path()).out == run_program(command + "h200").out);
  CHECK(lines(run_program("clusters").out) > 10);
  CHECK_THAT(run_program("clusters dgx-h100").out, ContainsSubstring("sources\n"));
}

TEST_CASE("commands: one node is an answer, and the batch of compare and search has one source") {
  CHECK(run_program("memory --model gpt2 --dp 64").code == 0);
  const ProgramResult small = run_program("memory --model gpt2 --dp 64 --nodes 1");
  CHECK(small.code == 2);
  CHECK_THAT(small.err, ContainsSubstring("world size 64, 1 nodes x 8 devices"));
  CHECK(run_program("compare --model gpt2 --devices 2 --dp 2").code == 2);
  CHECK(run_program("search --model gpt2 --devices 2 --accumulate 4").code == 2);
  CHECK(run_program("simulate --model gpt2 --set model.name=\xff").code == 2);
}

TEST_CASE("commands: search tries every degree that divides the devices") {
  const ProgramResult search = run_program(
      "search --model gpt2-xl --devices 6 --global-batch 24 --strategy ddp --top 1000 --csv");
  CHECK(search.code == 0);
  for (const char* layout : {"dp=6,", "dp=1,tp=", "dp=2,pp=3", "dp=1,pp=6", "dp=3,pp=2"}) {
    INFO(layout);
    CHECK((search.out.find(layout) != std::string::npos) ==
          (std::string(layout) != "dp=1,tp="));  // 25 heads: no tp
  }
  // How many are shown does not change who wins.
  const auto first_of = [](const std::string& top) {
    const std::string out =
        run_program("search --model gpt2-xl --devices 4 --csv --top " + top).out;
    return out.substr(0, out.find('\n', out.find('\n') + 1));
  };
  CHECK(first_of("1") == first_of("3"));
}

TEST_CASE("commands: doctor answers without a GPU") {
  const ProgramResult doctor = run_program("doctor");
  CHECK(doctor.code == 0);
  CHECK_THAT(doctor.out, ContainsSubstring("processor"));
  CHECK_THAT(doctor.out, ContainsSubstring("oneDNN") || ContainsSubstring("Eigen"));
  CHECK(run_program("doctor --json").out.rfind("{\n  \"schema_version\": 1,", 0) == 0);
}

TEST_CASE("commands: text outside UTF-8 is ASCII, and colour is for terminals") {
  const ProgramResult ascii = run_program("memory --model gpt2 --explain", "LC_ALL=C");
  CHECK(std::all_of(
      ascii.out.begin(), ascii.out.end(), [](char c) { return c == '\n' || c >= ' '; }));
  CHECK_THAT(ascii.out, ContainsSubstring("  #\n"));
  const ProgramResult wide = run_program("memory --model gpt2", "LC_ALL=C.UTF-8");
  CHECK_THAT(wide.out, ContainsSubstring("\xe2\x96"));  // block elements
  CHECK(wide.out.find('\033') == std::string::npos);
}

TEST_CASE("commands: a reader that stops reading is no error") {
  // The status of the program, not that of the pipe, which is head's.
  const TemporaryFile code("code", "");
  const std::string command = "{ " LOCKSTEP_PROGRAM
                              " plan --model llama-3.1-8b --accumulate 64; echo $? >" +
                              code.path() + "; } 2>&1 | head -n 1 >/dev/null";
  CHECK(std::system(command.c_str()) == 0);
  // `true` as the program of the shell: prints the file that the status went to.
  const std::string show = "--version >/dev/null; cat " + code.path();
  CHECK(run_program(show).out == "0\n");
}

TEST_CASE("commands: Ctrl-C ends with 130") {
  CHECK(interrupt_program({"plan", "--model", "llama-3.1-8b", "--accumulate", "64"}) == 130);
}

TEST_CASE("commands: output that cannot be written is an error") {
  const ProgramResult full = run_program("memory --model gpt2 >/dev/full");
  CHECK(full.code == 7);
  CHECK_THAT(full.err, ContainsSubstring("cannot write to stdout"));
}

TEST_CASE("commands: what cannot be written ends with 7 and one line, whoever writes it") {
  const TemporaryFile file("no_folder", "");
  const std::string inside = file.path() + "/x";  // below a file nothing can be
  const TemporaryFile trace("written.lstrace", "");
  const std::string simulate = "simulate --model gpt2-tiny --cluster laptop ";
  REQUIRE(run_program(simulate + "--trace " + trace.path()).code == 0);
  for (const std::string& flags : {std::string("--help >/dev/full"),
                                   std::string("memory --help >/dev/full"),
                                   std::string("memory --model gpt2 --json >/dev/full"),
                                   std::string("plan --model gpt2-tiny --csv >/dev/full"),
                                   simulate + "--json >/dev/full",
                                   std::string("models >/dev/full"),
                                   "trace " + trace.path() + " --json >/dev/full",
                                   "trace " + trace.path() + " --chrome " + inside,
                                   simulate + "--trace " + inside,
                                   "train --steps 1 --out " + inside,
                                   "train --steps 1 --out " + file.path()}) {
    const ProgramResult run = run_program(flags);
    INFO(flags << ": " << run.err);
    CHECK(run.code == 7);
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  }
}
