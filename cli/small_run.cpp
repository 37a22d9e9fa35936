#include "cli/small_run.h"

#include "core/io/scenario_io.h"

namespace lockstep::cli {

Scenario small_run() {
  Scenario scenario;
  set_key(scenario, "model", "gpt2-tiny");
  set_key(scenario, "cluster", "laptop");
  scenario.training.seq_len = 64;
  scenario.training.micro_batch = 8;
  scenario.training.precision = Precision::kFp32;
  scenario.training.learning_rate = 4e-3;
  scenario.training.warmup_steps = 20;
  return scenario;
}

}  // namespace lockstep::cli
