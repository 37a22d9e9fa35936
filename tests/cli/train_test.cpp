// `lockstep train` and `lockstep generate`: what a run leaves, that it goes on where it stopped,
// and what is refused.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::ProgramResult;
using test::run_program;
using Json = nlohmann::json;

/// Where a run may make its folder.
class Folder {
 public:
  const std::string& path() const { return path_; }

 private:
  test::TemporaryFolder parent_;
  std::string path_ = parent_.file("run");
};

ProgramResult train(const Folder& folder, const std::string& flags) {
  return run_program("train --seq-len 32 --micro-batch 2 --no-sample --out " + folder.path() + " " +
                     flags);
}

std::vector<Json> metrics_of(const Folder& folder) {
  std::ifstream file(folder.path() + "/metrics.jsonl");
  std::vector<Json> lines;
  for (std::string line; std::getline(file, line);) {
    lines.push_back(Json::parse(line));
  }
  return lines;
}

std::string only_file(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    return entry.path().string();
  }
  return "";
}

}  // namespace

TEST_CASE("train: the loss falls, and the folder holds metrics, trace, report and checkpoint") {
  const Folder folder;
  const ProgramResult run = train(folder, "--steps 40 --strategy zero2 --dp 3");
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("zero2, dp 3") && ContainsSubstring("40/40"));
  const std::vector<Json> metrics = metrics_of(folder);
  REQUIRE(metrics.size() == 40);
  CHECK(metrics.front()["loss"].get<double>() > 5);  // log(257) = 5.55 before the first step
  CHECK(metrics.back()["loss"].get<double>() < 4);
  CHECK(metrics.back()["evaluation_loss"].get<double>() < 4);
  CHECK(metrics.back()["peak_bytes"].get<std::int64_t>() > 0);
  std::ifstream report(folder.path() + "/report.json");
  const Json json = Json::parse(report);
  CHECK(json["source"] == "measured");
  CHECK(json["devices"] == 3);
  CHECK(json["time_split"].size() == 3);
  const ProgramResult trace = run_program("trace " + only_file(folder.path() + "/trace"));
  CHECK(trace.code == 0);
  CHECK_THAT(trace.out, ContainsSubstring("measured step"));
}

TEST_CASE("train: a run that is resumed ends where an uninterrupted one does") {
  const Folder whole;
  const Folder parts;
  const std::string flags = "--set training.final_learning_rate=1 --tp 2 --steps ";
  REQUIRE(train(whole, flags + "6").code == 0);
  REQUIRE(train(parts, flags + "3").code == 0);
  const ProgramResult rest = train(parts, "--resume --steps 6");
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  const std::vector<Json> a = metrics_of(whole);
  const std::vector<Json> b = metrics_of(parts);
  REQUIRE(a.size() == 6);
  REQUIRE(b.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(a[i]["loss"] == b[i]["loss"]);
  }
}

TEST_CASE("train: a run goes on under another strategy with the loss that one rank would have") {
  const Folder one;
  const Folder other;
  const std::string flags = "--set training.final_learning_rate=1 --global-batch 6 --steps ";
  REQUIRE(train(one, "--dp 1 " + flags + "6").code == 0);
  REQUIRE(train(other, "--strategy fsdp --dp 3 " + flags + "3").code == 0);
  const ProgramResult rest =
      train(other, "--resume --strategy zero1 --dp 1 --pp 3 --accumulate 3 --steps 6");
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  CHECK_THAT(rest.out, ContainsSubstring("pp 3"));
  CHECK(metrics_of(other).back()["loss"].get<double>() ==
        Approx(metrics_of(one).back()["loss"].get<double>()).epsilon(1e-4));
}

TEST_CASE("train: pipelines, any rank count, and text of one's own") {
  const Folder folder;
  const test::TemporaryFile text("train_test.txt", std::string(3000, 'a') + std::string(3000, 'b'));
  const ProgramResult run = train(folder,
                                  "--model llama-tiny --pp 3 --accumulate 4 --nproc-per-node 3 "
                                  "--steps 3 --data " +
                                      text.path());
  INFO(run.err);
  REQUIRE(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("pp 3") && ContainsSubstring("3 ranks"));
  const ProgramResult written =
      run_program("generate --tokens 12 --prompt ab --temperature 0 --out " + folder.path());
  INFO(written.err);
  CHECK(written.code == 0);
  CHECK(written.out.substr(0, 2) == "ab");
  CHECK(written.out ==
        run_program("generate --tokens 12 --prompt ab --temperature 0 --out " + folder.path()).out);
}

TEST_CASE("train: MLPs learn the built-in task, with every kind of batch norm") {
  for (const char* model : {"mlp-tiny", "mlp-tiny-bn", "mlp-tiny-syncbn"}) {
    const Folder folder;
    const ProgramResult run =
        run_program("train --model " + std::string(model) +
                    " --dp 3 --micro-batch 16 --steps 150 --out " + folder.path());
    INFO(model << ": " << run.err);
    REQUIRE(run.code == 0);
    CHECK_THAT(run.out, ContainsSubstring("samples/s"));
    const std::vector<Json> metrics = metrics_of(folder);
    CHECK(metrics.front()["loss"].get<double>() > 2);  // log(10) = 2.3 for ten classes
    CHECK(metrics.back()["loss"].get<double>() < 1);
    CHECK(metrics.back()["evaluation_loss"].get<double>() < 1);
    CHECK(run_program("generate --out " + folder.path()).code == 7);
  }
}

TEST_CASE("train: documents of different lengths weigh by their tokens") {
  std::string documents;
  for (int i = 0; i < 120; ++i) {
    documents +=
        std::string(static_cast<std::size_t>(3 + i * 7 % 50), static_cast<char>('a' + i % 5));
    documents += "\n\n";
  }
  const test::TemporaryFile text("train_documents.txt", documents);
  const Folder one;
  const Folder many;
  const std::string flags = "--documents --global-batch 6 --steps 8 --data " + text.path();
  REQUIRE(train(one, "--dp 1 " + flags).code == 0);
  const ProgramResult run = train(many, "--strategy fsdp --dp 3 " + flags);
  INFO(run.err);
  REQUIRE(run.code == 0);
  const std::vector<Json> a = metrics_of(one);
  const std::vector<Json> b = metrics_of(many);
  REQUIRE(b.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(a[i]["loss"].get<double>() == Approx(b[i]["loss"].get<double>()).epsilon(1e-4));
  }
  // Kept on resuming; a mean of the ranks' means is another number.
  CHECK(train(many, "--resume --steps 9").code == 0);
  const Folder means;
  REQUIRE(
      train(means, "--strategy fsdp --dp 3 --set training.loss_mean=mean_of_means " + flags).code ==
      0);
  CHECK(std::abs(metrics_of(means)[0]["loss"].get<double>() - a[0]["loss"].get<double>()) > 1e-4);
}

TEST_CASE("train: threads that share a rank's products change its last bits at most") {
  const Folder one;
  const Folder two;
  REQUIRE(train(one, "--steps 3").code == 0);
  const ProgramResult run = train(two, "--steps 3 --threads 2");
  if (run.code == 7) {
    CHECK_THAT(run.err, ContainsSubstring("Eigen"));
    return;
  }
  REQUIRE(run.code == 0);
  CHECK(metrics_of(two).back()["loss"].get<double>() ==
        Approx(metrics_of(one).back()["loss"].get<double>()).epsilon(1e-5));
}

TEST_CASE("train: a checkpoint that cannot be written ends with 7 and leaves no half one") {
  const Folder folder;
  std::filesystem::create_directories(folder.path());
  std::ofstream(folder.path() + "/checkpoints") << "in the way";
  const ProgramResult run = train(folder, "--steps 1");
  INFO(run.err);
  CHECK(run.code == 7);
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(std::filesystem::is_regular_file(folder.path() + "/checkpoints"));
}

TEST_CASE("train: what cannot be is said in one line, and nothing is left behind") {
  const Folder folder;
  struct Case {
    const char* flags;
    int code;
    const char* words;
  };
  const Case cases[] = {{"--precision bf16", 7, "fp32"},
                        {"--backend nccl", 7, "local"},
                        {"--set training.gradient_dtype=bf16", 7, "gradient_dtype"},
                        {"--strategy fsdp --set training.reduce_dtype=fp64", 7, "reduce_dtype"},
                        {"--timeout nan", 2, "--timeout"},
                        {"--data /tmp", 3, "directory"},
                        {"--model mixtral-tiny", 7, "mixtures of experts"},
                        {"--model mlp-tiny --seq-len 1 --data /etc/hostname", 2, "MLP"},
                        {"--precision fp64 --threads 2", 7, "--threads"},
                        {"--threads 0", 2, "--threads"},
                        {"--data /nowhere/text", 3, "cannot be read"},
                        {"--data /dev/null", 3, "too few"},
                        {"--resume", 2, "no training run"},
                        {"--dp 3 --nproc-per-node 2", 2, "--nproc-per-node"},
                        {"--set model.vocab=100", 3, "vocab"},
                        {"--model gpt2-xl --micro-batch 512", 4, "this machine has"},
                        {"--steps 0", 2, "--steps"}};
  for (const Case& each : cases) {
    const ProgramResult run = train(folder, each.flags);
    INFO(each.flags << ": " << run.err);
    CHECK(run.code == each.code);
    CHECK_THAT(run.err, ContainsSubstring(each.words));
    CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    CHECK_FALSE(std::filesystem::exists(folder.path()));
  }
}

TEST_CASE("train: a resumed run keeps its text and its steps, and cannot change its model") {
  const Folder folder;
  const test::TemporaryFile text("train_kept.txt", std::string(4000, 'x'));
  REQUIRE(train(folder, "--steps 4 --checkpoint-every 2 --data " + text.path()).code == 0);
  std::filesystem::remove_all(folder.path() + "/checkpoints/step-00000004");
  const ProgramResult rest = train(folder, "--resume");
  INFO(rest.err);
  REQUIRE(rest.code == 0);
  const std::vector<Json> metrics = metrics_of(folder);
  REQUIRE(metrics.size() == 4);
  CHECK(metrics.back()["step"] == 4);
  CHECK_THAT(rest.out, ContainsSubstring("112 samples"));  // of 32 tokens of the text, less a tenth
  const ProgramResult other = train(folder, "--resume --set model.norm_epsilon=1e-3");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, ContainsSubstring("the model is the run's"));
  CHECK(train(folder, "--resume --nproc-per-node 5").code == 2);
}

TEST_CASE(
    "train: damaged bytes of a checkpoint are noticed, and so is a step that is not its own") {
  const Folder folder;
  REQUIRE(train(folder, "--steps 2").code == 0);
  const std::string checkpoint = only_file(folder.path() + "/checkpoints");
  {
    std::fstream file(checkpoint + "/rank-00000.safetensors",
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(20'000);
    file << "harm";
  }
  const ProgramResult run = train(folder, "--resume --steps 4");
  CHECK(run.code == 3);
  CHECK_THAT(run.err, ContainsSubstring("checksum"));
  std::ofstream(checkpoint + "/manifest.json") << R"({"version": 1, "step": -6, "ranks": [0]})";
  CHECK(train(folder, "--resume --steps 4").code == 3);
}

TEST_CASE("train: a resume with nothing left to do changes nothing") {
  const Folder folder;
  REQUIRE(train(folder, "--steps 2").code == 0);
  const auto text_of = [&](const char* name) {
    std::ifstream file(folder.path() + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  };
  const std::string scenario = text_of("scenario.json");
  const std::string settings = text_of("run.json");
  const ProgramResult again =
      train(folder, "--resume --steps 2 --set training.learning_rate=5 --data README.md");
  CHECK(again.code == 0);
  CHECK_THAT(again.out, ContainsSubstring("nothing left to do: 2 of 2 steps"));
  CHECK(text_of("scenario.json") == scenario);
  CHECK(text_of("run.json") == settings);
  const ProgramResult other = train(folder, "--resume --steps 3 --optimizer sgd");
  CHECK(other.code == 2);
  CHECK_THAT(other.err, ContainsSubstring("the optimizer is the run's (adamw)"));
}

TEST_CASE("train: parameters that are no numbers any more are not saved") {
  const Folder folder;
  const ProgramResult run = train(folder, "--steps 2 --set training.learning_rate=1e6");
  CHECK(run.code == 1);
  CHECK_THAT(run.err, ContainsSubstring("loss after step 2 is"));
  CHECK(metrics_of(folder).size() == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/checkpoints"));
}

TEST_CASE("train: parameters that are infinite or NaN are not saved between evaluations either") {
  const Folder folder;
  const ProgramResult run =
      train(folder, "--steps 4 --checkpoint-every 1 --evaluate-every 4 --set training.epsilon=0");
  CHECK(run.code == 1);
  CHECK_THAT(run.err, ContainsSubstring("after step 1 ") && ContainsSubstring("infinities or NaN"));
  CHECK(std::filesystem::is_empty(folder.path() + "/checkpoints"));
}

TEST_CASE("train: ranks run here, whatever machine the scenario is planned for") {
  const Folder folder;
  const ProgramResult run = train(folder, "--steps 1 --cluster dgx-h100");
  CHECK(run.code == 0);
  CHECK_THAT(run.err, ContainsSubstring("H100-SXM5-80GB is left aside"));
  const ProgramResult trace = run_program("trace " + folder.path());
  CHECK(trace.code == 0);
  CHECK_THAT(trace.out, !ContainsSubstring("H100"));
}

TEST_CASE("train: a run is not overwritten, and a damaged checkpoint is refused with its file") {
  const Folder folder;
  REQUIRE(train(folder, "--steps 2").code == 0);
  CHECK(train(folder, "--steps 2").code == 2);
  const std::string checkpoint = only_file(folder.path() + "/checkpoints");
  const std::string file = checkpoint + "/rank-00000.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 100);
  const ProgramResult run = train(folder, "--resume --steps 4");
  CHECK(run.code == 3);
  CHECK_THAT(run.err, ContainsSubstring("rank-00000.safetensors"));
}

}  // namespace lockstep
