// Value reference: what every parameter, gradient, norm and loss of a step ought to be, from runs
// of the one-rank plan of the same model and training.
//
// Iteration k of the one-rank plan is run once per data-parallel coordinate d and micro-batch m,
// with the samples that (d, m) has. The gradient of a parameter must be the mean over all (d, m)
// (or the sum weighted by tokens); the next version of a parameter is a function of the old one,
// the gradient and the optimizer states. Iterations are made when asked for and kept, so one
// reference serves a plan and all its mutants.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/check/value_coverage.h"
#include "core/check/value_machine.h"
#include "core/plan.h"

namespace lockstep {

/// What of a plan the numbers depend on.
struct ValueSetting {
  int data = 1;          ///< data-parallel coordinates [N]
  int microbatches = 1;  ///< [M]
  bool clips = false;
  bool by_tokens = false;  ///< loss is the mean over all tokens, not the mean of means
  bool operator==(const ValueSetting&) const = default;
};

/// The optimizer's arithmetic, as functions.
field::Number next_state(int which, field::Number state, field::Number gradient);
field::Number next_parameter(const ValueStep& step_with_new_states);
field::Number first_version(std::int32_t canonical_parameter);
field::Number clip_number(field::Number sum_of_squares);
/// Square of elements [begin, begin + elements) of a gradient; parts add up to the square of all.
field::Number square_number(const ModelGraph& graph,
                            std::int32_t parameter,
                            const ValueSymbol& gradient,
                            std::int64_t elements);

/// A result of a work together with the samples it belongs to.
field::Number traced_number(field::Number samples, field::Number result);

/// One optimizer step. Vectors by canonical parameter id.
struct ValueIteration {
  std::vector<field::Number> before;  ///< parameter
  std::vector<field::Number> after;
  std::vector<field::Number> gradient;  ///< before clipping
  std::vector<std::array<field::Number, 2>> states_before;
  /// Of (d, m), in units of the expected gradient: they add up to it. By parameter, d, m.
  std::vector<std::vector<field::Number>> contributions;
  field::Number coefficient = 1;  ///< 1 without clipping
  field::Number squares = 0;
  field::Number loss = 0;
  field::Number tokens = 0;
  std::unordered_map<field::Number, std::int32_t> parameter_of;  ///< by number before
  std::unordered_map<field::Number, std::int32_t> gradient_of;   ///< by expected gradient
  std::unordered_set<field::Number> results;  ///< of all works, if the reference traces
};

class ValueReference {
 public:
  /// `plan` must have one rank, one micro-batch, no clipping; it must outlive the reference.
  /// With `traces` it also keeps what every work gave, to find the first one that differs.
  ValueReference(const Plan& plan, const ValueSetting& setting, bool traces = false);
  ~ValueReference();

  const ValueSetting& setting() const { return setting_; }
  const Plan& plan() const { return plan_; }
  bool traces() const;
  const ValueIteration& iteration(int k);
  /// Forward loss of the evaluate section after k iterations, the mean over `microbatches`.
  field::Number evaluation_loss(int k, int microbatches);
  /// What is wrong with the one-rank plan itself; empty if nothing.
  const std::string& problem() const { return problem_; }

 private:
  class Recorder;
  void start();
  void make_next();
  void run_step(int k);
  void combine(ValueIteration& now) const;
  void move_parameters(int from, int to);

  const Plan& plan_;
  ValueSetting setting_;
  std::string problem_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<ValueMachine> machine_;
  std::vector<std::unique_ptr<ValueIteration>>
      iterations_;  ///< the machine's memory is at the last
  std::unordered_map<std::uint64_t, field::Number> evaluation_;
};

}  // namespace lockstep
