// A run that was stopped and resumed ends with the bits of one that was not; files that cannot be
// resumed from are refused in one line.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/model_graph.h"
#include "executor/class_data.h"
#include "executor/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"
#include "tests/support/temporary_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

constexpr std::int64_t kSteps = 6;

Scenario scenario_of(DataKind kind, std::int64_t data, std::int64_t pipeline) {
  Scenario scenario = test::tiny_gpt();
  scenario.model.vocab = 256;
  scenario.model.layers = 4;
  scenario.training.dropout = 0.1;
  scenario.training.clip_norm = 0.5;
  scenario.training.accumulate = 2;
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = data;
  scenario.strategy.pipeline.degree = pipeline;
  scenario = resolved(scenario);
  require_valid(scenario);
  return scenario;
}

exec::TokenData data_of(const Scenario& scenario) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += static_cast<char>('a' + (i * i + i / 7) % 26);
  }
  return {exec::text_tokens(text), scenario.training.seq_len};
}

exec::TrainOptions options_of(std::int64_t steps,
                              const fs::path& checkpoints,
                              const fs::path& from) {
  exec::TrainOptions options;
  options.steps = steps;
  options.checkpoints = checkpoints;
  options.resume_from = from;
  options.job.device.poison = true;
  return options;
}

/// Trains to step `stop` of kSteps and saves; the losses of the steps.
std::vector<double> train(const Scenario& scenario,
                          std::int64_t stop,
                          const fs::path& checkpoints,
                          const fs::path& from = {}) {
  exec::TokenData data = data_of(scenario);
  exec::Trainer trainer(scenario, data, options_of(kSteps, checkpoints, from));
  std::vector<double> losses;
  trainer.run([&](const exec::StepMetrics& metrics) {
    losses.push_back(metrics.loss);
    return metrics.step < stop;
  });
  return losses;
}

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Everything in the newest checkpoint: parameters and states, whole, in the order of their ids.
/// (Which of several replicas wrote an element is a matter of time.)
std::vector<double> contents_of(const Scenario& scenario, const fs::path& folder) {
  const auto graph = build_model_graph(scenario.model, scenario.training);
  const exec::Checkpoint checkpoint(*graph, exec::latest_checkpoint(folder));
  std::vector<double> all;
  for (const std::size_t part : {0U, 1U, 2U}) {  // parameter, AdamW's two moments
    for (std::int32_t id = 0; id < graph->parameter_total(); ++id) {
      const ParameterDef& parameter = graph->parameter(id);
      std::vector<double> values(static_cast<std::size_t>(parameter.rows * parameter.columns));
      REQUIRE(
          checkpoint.read(part, id, 0, static_cast<std::int64_t>(values.size()), values.data()));
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  return all;
}

/// The message of the BadInputError that resuming throws.
std::string refusal(const Scenario& scenario, const fs::path& from) {
  const TemporaryFolder elsewhere;
  try {
    train(scenario, kSteps, elsewhere.path(), from);
  } catch (const BadInputError& error) {
    return error.what();
  }
  return "none";
}

void check_refused(const std::string& message, const std::string& part) {
  CHECK_THAT(message, Catch::Matchers::ContainsSubstring(part));
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace

TEST_CASE("a resumed run ends with the parameters, states and losses of an uninterrupted one") {
  for (const Scenario& scenario : {scenario_of(DataKind::kDdp, 1, 1),
                                   scenario_of(DataKind::kDdp, 2, 1),
                                   scenario_of(DataKind::kZero1, 2, 1),
                                   scenario_of(DataKind::kFsdp, 3, 1),
                                   scenario_of(DataKind::kFsdp, 2, 2)}) {
    INFO(test::text_of(scenario));
    const TemporaryFolder whole;
    const TemporaryFolder parts;
    const std::vector<double> expected = train(scenario, kSteps, whole.path());
    std::vector<double> losses = train(scenario, 3, parts.path());
    const std::vector<double> rest =
        train(scenario, kSteps, parts.path(), exec::latest_checkpoint(parts.path()));
    losses.insert(losses.end(), rest.begin(), rest.end());
    CHECK(losses == expected);
    const bool same = contents_of(scenario, whole.path()) == contents_of(scenario, parts.path());
    CHECK(same);
  }
}

TEST_CASE("a checkpoint of one sharding is resumed by another") {
  const TemporaryFolder folder;
  const Scenario sharded = scenario_of(DataKind::kFsdp, 2, 1);
  train(sharded, 3, folder.path());
  const fs::path from = exec::latest_checkpoint(folder.path());
  const TemporaryFolder same;
  const TemporaryFolder other;
  const std::vector<double> expected = train(sharded, kSteps, same.path(), from);
  const std::vector<double> losses =
      train(scenario_of(DataKind::kDdp, 2, 2), kSteps, other.path(), from);
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CHECK(losses[i] == Approx(expected[i]).epsilon(1e-6));
  }
}

TEST_CASE("what cannot be resumed from is refused in one line that names the file") {
  const Scenario scenario = scenario_of(DataKind::kFsdp, 2, 1);
  const TemporaryFolder folder;
  train(scenario, 2, folder.path());
  const fs::path good = exec::latest_checkpoint(folder.path());
  const auto damaged = [&](const char* name, const std::string& content) {
    const fs::path copy = folder.path() / "damaged";
    fs::remove_all(copy);
    fs::copy(good, copy);
    std::ofstream(copy / name, std::ios::binary) << content;
    return refusal(scenario, copy);
  };
  const char* const file = "rank-00001.safetensors";
  const std::string content = bytes_of(good / file);
  for (const std::size_t kept :
       {std::size_t{0}, std::size_t{5}, std::size_t{40}, content.size() / 2, content.size() - 1}) {
    check_refused(damaged(file, content.substr(0, kept)), file);
  }
  check_refused(damaged("manifest.json", "{\"version\": 1"), "manifest.json");
  check_refused(damaged("manifest.json", "{\"version\": 2}"), "only version 1");
  check_refused(damaged("manifest.json", "[1, 2]"), "manifest.json");
  check_refused(damaged("manifest.json", ""), "manifest.json");
  check_refused(damaged("manifest.json",
                        "{\"version\": 1, \"step\": 2, \"parameters\": " +
                            std::to_string(parameter_count(scenario.model)) + ", \"ranks\": [0]}"),
                "elements of");
  check_refused(refusal(scenario, folder.path() / "nothing"), "manifest.json");
  Scenario larger = scenario;
  larger.model.intermediate = 30;
  check_refused(refusal(larger, good), "is of a model with");
  Scenario plain = scenario;
  plain.training.optimizer = OptimizerKind::kSgd;
  const TemporaryFolder of_sgd;
  train(plain, 2, of_sgd.path());
  check_refused(refusal(scenario, exec::latest_checkpoint(of_sgd.path())), "another optimizer");
}

namespace {

/// Losses of the steps, then that of the evaluation, which is by the running statistics.
std::vector<double> train_norms(const Scenario& scenario,
                                std::int64_t steps,
                                const fs::path& checkpoints,
                                const fs::path& from = {}) {
  exec::ClassData data(scenario.model.widths.front(), scenario.model.widths.back());
  exec::Trainer trainer(scenario, data, options_of(steps, checkpoints, from));
  std::vector<double> losses;
  trainer.run([&](const exec::StepMetrics& metrics) {
    losses.push_back(metrics.loss);
    if (metrics.evaluation_loss) {
      losses.push_back(*metrics.evaluation_loss);
    }
    return true;
  });
  return losses;
}

Scenario norms(MlpNormKind norm, DataKind kind) {
  Scenario scenario = test::tiny_mlp(norm);
  scenario.training.micro_batch = 4;
  scenario.training.learning_rate = 1e-2;
  scenario.training.final_learning_rate = 1;  // a schedule depends on how many steps there are
  scenario.training.warmup_steps = 0;
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = 3;
  return resolved(scenario);
}

}  // namespace

TEST_CASE(
    "Running statistics are saved, and evaluation after a resume is what it would have been") {
  for (const MlpNormKind norm : {MlpNormKind::kBatchNorm, MlpNormKind::kSyncBatchNorm}) {
    for (const DataKind kind : {DataKind::kDp, DataKind::kDdp, DataKind::kZero1, DataKind::kFsdp}) {
      Scenario scenario = norms(norm, kind);
      if (!validate(scenario).empty()) {
        continue;  // DataParallel has no SyncBatchNorm
      }
      INFO(test::text_of(scenario));
      const TemporaryFolder whole;
      const TemporaryFolder parts;
      const std::vector<double> uninterrupted = train_norms(scenario, 6, whole.path());
      train_norms(scenario, 3, parts.path());
      const std::vector<double> rest =
          train_norms(scenario, 6, parts.path(), exec::latest_checkpoint(parts.path()));
      REQUIRE(rest.size() == 4);
      CHECK(rest == std::vector<double>(uninterrupted.end() - 4, uninterrupted.end()));
      // Fewer ranks go on with the statistics of the first ones.
      scenario.strategy.data.degree = 2;
      const fs::path newest = exec::latest_checkpoint(parts.path());
      CHECK(train_norms(resolved(scenario), 7, parts.path(), newest).size() == 2);
    }
  }
}

}  // namespace lockstep
