// Two plans can be made side by side in one process (a compare view does so): core has no globals
// that a second thread could see half written. ThreadSanitizer runs this program, and the texts of
// the plans must be those that one thread makes alone.
#include <string>
#include <thread>
#include <vector>

#include "core/check/plan_check.h"
#include "core/cluster_presets.h"
#include "core/model_presets.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"
#include "core/scenario.h"
#include "tests/support/catch.h"

namespace {

using lockstep::DataKind;
using lockstep::Plan;
using lockstep::Scenario;

Scenario scenario_of(const std::string& model, DataKind kind, int pp) {
  Scenario scenario;
  scenario.model = lockstep::find_model_preset(model).value();
  scenario.cluster = lockstep::find_cluster_preset("dgx-h100").value();
  scenario.strategy.data.kind = kind;
  scenario.strategy.data.degree = 2;
  scenario.strategy.pipeline.degree = pp;
  scenario.training.accumulate = pp;
  return resolved(scenario);
}

/// Every operation of the plan in words, then what the plan check has to say.
std::string text_of(const Scenario& scenario) {
  const Plan plan = make_plan(scenario);
  std::string text;
  for (std::size_t s = 0; s < plan.sections.size(); ++s) {
    for (std::size_t c = 0; c < plan.sections[s].programs.size(); ++c) {
      const auto count = static_cast<std::uint32_t>(plan.sections[s].programs[c].operations.size());
      for (std::uint32_t i = 0; i < count; ++i) {
        text += describe(plan, static_cast<int>(c), static_cast<int>(s), i) + "\n";
      }
    }
  }
  return text + check_plan(plan).text();
}

}  // namespace

TEST_CASE("plans made by several threads at once are those that one thread makes") {
  const std::vector<Scenario> scenarios = {scenario_of("gpt2-tiny", DataKind::kDdp, 1),
                                           scenario_of("llama-tiny", DataKind::kFsdp, 1),
                                           scenario_of("gpt2-tiny", DataKind::kZero1, 2),
                                           scenario_of("mlp-tiny-bn", DataKind::kDdp, 1)};
  // The threads first: what is made once and kept (tables of presets, names) is then made in them.
  std::vector<std::string> together(scenarios.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    threads.emplace_back([&, i] { together[i] = text_of(scenarios[i]); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    CHECK(together[i].size() > 1000);
    CHECK(together[i] == text_of(scenarios[i]));
  }
}
