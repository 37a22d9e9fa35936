// Generator: text from a trained model: one rank, forward passes of the plan's section `evaluate`,
// a token from the logits of the last position.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/plan.h"
#include "core/scenario.h"
#include "executor/checkpoint.h"
#include "executor/job.h"

namespace lockstep::exec {

struct GenerateOptions {
  std::int64_t tokens = 200;
  double temperature = 0.8;  ///< 0: the likeliest token each time
  std::uint64_t seed = 1;
};

class Generator {
 public:
  /// Of a scenario as it was trained, whatever its strategy. Parameters are copied from the
  /// checkpoint.
  Generator(const Scenario& scenario, const Checkpoint& checkpoint);
  ~Generator();

  /// Calls `on_token` with each token after `prompt`, until it returns false. The model sees the
  /// last seq_len tokens. An empty prompt begins with token 10, a line break.
  void generate(std::vector<std::int64_t> prompt,
                const GenerateOptions& options,
                const std::function<bool(std::int64_t)>& on_token);

 private:
  class PromptHost;

  Scenario scenario_;
  Plan plan_;
  std::unique_ptr<PromptHost> host_;
  std::unique_ptr<Job> job_;
};

}  // namespace lockstep::exec
