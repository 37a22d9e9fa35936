#include "core/model_presets.h"

#include <set>
#include <string>

#include "core/model.h"
#include "core/names.h"
#include "core/training.h"
#include "tests/support/catch.h"
#include "tests/support/published_models.h"

using namespace lockstep;

namespace {

double billions(const char* preset) {
  return static_cast<double>(parameter_count(*find_model_preset(preset))) / 1e9;
}

}  // namespace

TEST_CASE("Presets have exactly the published number of parameters") {
  for (const test::PublishedModel& published : test::kPublishedModels) {
    INFO(published.name);
    const std::optional<ModelSpec> model = find_model_preset(published.name);
    REQUIRE(model.has_value());
    CHECK(parameter_count(*model) == published.parameters);
  }
}

TEST_CASE(
    "The 7.5B preset is the size of ZeRO's figure 1 and gpt3-175b has 175 billion parameters") {
  CHECK(billions("gpt-7.5b") == Approx(7.5).epsilon(0.01));
  CHECK(billions("gpt3-175b") == Approx(175).epsilon(0.005));
}

TEST_CASE("Mixtral activates 12.9 billion of its parameters for a token") {
  const ModelSpec mixtral = *find_model_preset("mixtral-8x7b");
  CHECK(static_cast<double>(active_parameter_count(mixtral)) / 1e9 == Approx(12.9).epsilon(0.005));
  const ModelSpec dense = *find_model_preset("gpt2");
  CHECK(active_parameter_count(dense) == parameter_count(dense));
}

TEST_CASE("Every preset is valid by itself and names its source") {
  for (const ModelPreset& preset : model_presets()) {
    INFO(preset.model.name);
    Problems problems;
    validate(preset.model, problems);
    CHECK(problems.one_line() == "");
    CHECK_FALSE(preset.source.empty());
    CHECK(preset.model.assumptions.empty());
  }
}

TEST_CASE("No two presets share a name or an alias") {
  std::set<std::string> names;
  for (const ModelPreset& preset : model_presets()) {
    CHECK(names.insert(preset.model.name).second);
    for (const std::string& alias : preset.aliases) {
      INFO(alias);
      CHECK(names.insert(alias).second);
    }
  }
}

TEST_CASE("Presets are found by alias, without regard to case and kind of dash") {
  CHECK(find_model_preset("meta-llama/Llama-3.1-8B")->name == "llama-3.1-8b");
  CHECK(find_model_preset("llama3-8b")->name == "llama-3.1-8b");
  CHECK(find_model_preset("LLAMA_3.1_8B")->name == "llama-3.1-8b");
  CHECK_FALSE(find_model_preset("llama-3.1-9b").has_value());
  CHECK_FALSE(find_model_preset("").has_value());
}

TEST_CASE("An unknown preset is answered with the nearest name") {
  const std::string message = unknown_model_message("lama-3.1-8b");
  CHECK(message.find("\"lama-3.1-8b\" is not valid, nearest is \"llama-3.1-8b\"") == 0);
}

TEST_CASE("The nets of the measured bucket tables have the measured sizes") {
  // semantics 3.2: 8 Linear layers hold 45.5 MiB in fp32, measured as 45.545.
  const double mib = static_cast<double>(parameter_count(*find_model_preset("mlp-8linear"))) * 4 /
                     (1024.0 * 1024.0);
  CHECK(mib == Approx(45.545).epsilon(1e-5));
  // semantics 3.7: 64-256, 256-64, 64-32 with biases; buckets of 18432 and 16736 elements.
  CHECK(parameter_count(*find_model_preset("mlp-3linear")) == 18432 + 16736);
}
