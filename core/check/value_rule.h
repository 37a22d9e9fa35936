// Value rule: one work being applied to symbols (value_rules.h); what the rules have in common.
//
// Not for others than value_rules*.cpp.
#pragma once

#include <string>
#include <utility>

#include "core/check/value_rules.h"

namespace lockstep {

/// One call of a rule. Reads operands, writes outputs, remembers the first problem.
class ValueRule {
 public:
  explicit ValueRule(ValueCall& call)
      : call_(call), module_(call.graph->module(call.op->module)), op_(*call.op) {}

  std::string take_problem() { return std::move(problem_); }

  void embedding();
  void embedding_grad();
  void position();
  void position_grad();
  void matmul();
  void matmul_grad_input();
  void matmul_grad_weight();
  void bias();
  void bias_grad();
  void norm();
  void norm_grad();
  void rope();
  void attention();
  void attention_grad();
  void activation();
  void activation_grad();
  void dropout();
  void dropout_grad();
  void bn_sums();
  void bn_apply();
  void bn_grad_sums();
  void bn_grad_apply();
  void route();
  void route_grad();
  void dispatch();
  void dispatch_grad();
  void combine();
  void combine_grad();
  void loss_local_max();
  void loss_local_sums();
  void loss_finish();

 private:
  std::size_t inputs() const { return call_.inputs.size(); }
  std::size_t outputs() const { return call_.outputs.size(); }
  const ValueTensor& in(std::size_t i) const { return call_.inputs[i]; }
  field::Number number(std::size_t i) const { return in(i).symbol.number; }
  std::size_t weights() const { return static_cast<std::size_t>(module_.weights); }

  /// The unknown function of output `k`, applied to inputs [first, last).
  field::Number function(std::size_t k, std::size_t first, std::size_t last) const;
  field::Number function(std::size_t k) const { return function(k, 0, 0); }
  /// Of work `work`, for terms that two works share.
  field::Number shared(Work work, std::size_t k, field::Number argument = 0) const;

  void wrong(std::string text);
  /// Inputs i and j hold the same tokens.
  void same_tokens(std::size_t i, std::size_t j);
  void same_slice(std::size_t i, std::size_t j);
  void not_sliced(std::size_t i);
  /// Input i begins at its tensor's first element.
  void from_start(std::size_t i);
  /// The part of a sum over tokens that input i, a tensor of the module, makes.
  field::Number token_part(std::size_t i, std::int8_t tensor) const;
  field::Number token_part(std::size_t i) const { return token_part(i, module_.inputs.front()); }
  field::Number slice_part(const ValueSymbol& symbol) const {
    return field::part(symbol.index, symbol.index + 1, symbol.of);
  }

  /// Output k = `value`, holding the tokens and slice of input `like`.
  void set(std::size_t k, field::Number value, std::size_t like);
  void set_sliced(std::size_t k, field::Number value, std::size_t like, const ValueSymbol& slice);
  /// Output k = `value` from its first element on.
  void set_whole(std::size_t k, field::Number value, const ValueSymbol& slice = {});

  ValueCall& call_;
  const ModuleDef& module_;
  const Operation& op_;
  std::string problem_;
};

/// "slice 1 of 4", "whole rows".
std::string slice_text(const ValueSymbol& symbol);

}  // namespace lockstep
