#include "core/check/value_rules.h"

#include <fmt/format.h>

#include "core/check.h"
#include "core/layout.h"

namespace lockstep {
namespace {

using field::Number;

/// One call of a rule. Reads operands, writes outputs, remembers the first problem.
class Rule {
 public:
  explicit Rule(ValueCall& call)
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
  void rope(bool backward);
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
  Number number(std::size_t i) const { return in(i).symbol.number; }
  std::size_t weights() const { return static_cast<std::size_t>(module_.weights); }

  /// The unknown function of output `k`, applied to inputs [first, last).
  Number function(std::size_t k, std::size_t first, std::size_t last) const;
  Number function(std::size_t k) const { return function(k, 0, 0); }
  /// Of work `work`, for terms that two works share.
  Number shared(Work work, std::size_t k, Number argument = 0) const;

  void wrong(std::string text);
  /// Inputs i and j hold the same tokens.
  void same_tokens(std::size_t i, std::size_t j);
  void same_slice(std::size_t i, std::size_t j);
  void not_sliced(std::size_t i);
  /// Input i begins at its tensor's first element.
  void from_start(std::size_t i);
  /// The part of a sum over tokens that input i, a tensor of the module, makes.
  Number token_part(std::size_t i, std::int8_t tensor) const;
  Number token_part(std::size_t i) const { return token_part(i, module_.inputs.front()); }
  Number slice_part(const ValueSymbol& symbol) const {
    return field::part(symbol.index, symbol.index + 1, symbol.of);
  }

  /// Output k = `value`, holding the tokens and slice of input `like`.
  void set(std::size_t k, Number value, std::size_t like);
  void set_sliced(std::size_t k, Number value, std::size_t like, const ValueSymbol& slice);
  /// Output k = `value` from its first element on.
  void set_whole(std::size_t k, Number value, const ValueSymbol& slice = {});

  ValueCall& call_;
  const ModuleDef& module_;
  const Operation& op_;
  std::string problem_;
};

// ---- helpers -----------------------------------------------------------------------------------

Number Rule::function(std::size_t k, std::size_t first, std::size_t last) const {
  field::Hash hash(static_cast<std::uint64_t>(op_.work));
  hash.add(op_.module).add(k);
  for (std::size_t i = first; i < last; ++i) {
    hash.add(number(i));
  }
  return hash.number();
}

Number Rule::shared(Work work, std::size_t k, Number argument) const {
  return field::Hash(static_cast<std::uint64_t>(work) + 1000)
      .add(op_.module)
      .add(k)
      .add(argument)
      .number();
}

void Rule::wrong(std::string text) {
  if (problem_.empty()) {
    problem_ = std::move(text);
  }
}

std::string slice_text(const ValueSymbol& symbol) {
  return symbol.of == 1 ? "whole rows" : fmt::format("slice {} of {}", symbol.index, symbol.of);
}

void Rule::same_tokens(std::size_t i, std::size_t j) {
  if (in(i).symbol.begin * in(j).elements != in(j).symbol.begin * in(i).elements) {
    wrong(
        fmt::format("operands {} and {} hold different tokens: from element {} of {} and {} of {}",
                    i,
                    j,
                    in(i).symbol.begin,
                    in(i).elements,
                    in(j).symbol.begin,
                    in(j).elements));
  }
}

void Rule::same_slice(std::size_t i, std::size_t j) {
  if (!in(i).symbol.same_slice(in(j).symbol)) {
    wrong(fmt::format("operand {} is {}, operand {} is {}",
                      i,
                      slice_text(in(i).symbol),
                      j,
                      slice_text(in(j).symbol)));
  }
}

void Rule::not_sliced(std::size_t i) {
  if (in(i).symbol.of != 1) {
    wrong(fmt::format("operand {} is {}, needed whole", i, slice_text(in(i).symbol)));
  }
}

void Rule::from_start(std::size_t i) {
  if (in(i).symbol.begin != 0) {
    wrong(fmt::format(
        "operand {} begins at element {} of its tensor, needed in full", i, in(i).symbol.begin));
  }
}

Number Rule::token_part(std::size_t i, std::int8_t tensor) const {
  const Segment& segment = call_.graph->segment_of(op_.module);
  const TensorDef& definition =
      call_.graph->form(segment).tensors[static_cast<std::size_t>(tensor)];
  const std::int64_t width = definition.region == Region::kWidth
                                 ? ceil_divide(definition.width, in(i).symbol.of)
                                 : definition.width;
  const std::int64_t total = call_.tokens * definition.per_token * width;
  const std::int64_t begin = in(i).symbol.begin;
  return field::part(begin, begin + in(i).elements, total);
}

void Rule::set(std::size_t k, Number value, std::size_t like) {
  set_sliced(k, value, like, in(like).symbol);
}

void Rule::set_sliced(std::size_t k, Number value, std::size_t like, const ValueSymbol& slice) {
  ValueTensor& output = call_.outputs[k];
  const std::int64_t elements = std::max<std::int64_t>(in(like).elements, 1);
  // Both hold the same rows, so places scale with the row length.
  output.symbol = {
      value, in(like).symbol.begin * output.elements / elements, slice.index, slice.of};
}

void Rule::set_whole(std::size_t k, Number value, const ValueSymbol& slice) {
  call_.outputs[k].symbol = {value, 0, slice.index, slice.of};
}

// ---- embedding and positions -------------------------------------------------------------------

/// (tokens, weight) -> y. Each rank of a row-cut table finds some of the tokens: a part.
void Rule::embedding() {
  from_start(1);
  not_sliced(0);
  const Number value = function(0, 0, 2);
  set_sliced(0, field::multiply(value, slice_part(in(1).symbol)), 0, {});
}

/// (dy, tokens) -> dweight, of the rows that this rank has.
void Rule::embedding_grad() {
  same_tokens(0, 1);
  not_sliced(0);
  const std::int32_t id =
      call_.graph->segment_of(op_.module).first_parameter + module_.parameters.front();
  const ParameterDef& weight = call_.graph->parameter(id);
  const bool cut = call_.tensor_degree > 1 && weight.cut == ParameterCut::kRows &&
                   call_.outputs[0].elements < weight.rows * weight.columns;
  const Number value = field::multiply(number(0), function(0, 1, 2));
  set_whole(0,
            field::multiply(value, token_part(0, module_.outputs.front())),
            cut ? ValueSymbol{0, 0, call_.tensor_index, call_.tensor_degree} : ValueSymbol{});
}

void Rule::position() {
  from_start(1);
  not_sliced(0);
  set(0, function(0, 0, 2), 0);
}

void Rule::position_grad() {
  not_sliced(0);
  set_whole(0,
            field::multiply(field::multiply(number(0), function(0)),
                            token_part(0, module_.outputs.front())));
}

// ---- linear ------------------------------------------------------------------------------------

ParameterCut cut_of(const ValueCall& call, const ModuleDef& module) {
  const Segment& segment = call.graph->segment_of(call.op->module);
  return call.graph->parameter(segment.first_parameter + module.parameters.front()).cut;
}

/// (x, weights..., biases...) -> y.
void Rule::matmul() {
  const std::size_t last_weight = 1 + weights();
  for (std::size_t i = 1; i < inputs(); ++i) {
    from_start(i);
    if (i < last_weight) {
      same_slice(i, 1);
    }
  }
  Number value = function(0, 0, last_weight);
  ValueSymbol slice;
  if (in(1).symbol.of > 1 && cut_of(call_, module_) == ParameterCut::kColumns) {
    same_slice(0, 1);
    value = field::multiply(value, slice_part(in(1).symbol));
  } else {
    not_sliced(0);
    slice = in(1).symbol;
  }
  for (std::size_t i = last_weight; i < inputs(); ++i) {
    if (in(i).symbol.of != slice.of || in(i).symbol.index != slice.index) {
      wrong(fmt::format("bias is {}, output is {}", slice_text(in(i).symbol), slice_text(slice)));
    }
    value = field::add(value, shared(Work::kBias, i - last_weight, number(i)));
  }
  set_sliced(0, value, 0, slice);
}

/// (dy, weights...) -> dx. A column-parallel layer gives a part of the sum.
void Rule::matmul_grad_input() {
  for (std::size_t i = 1; i < inputs(); ++i) {
    from_start(i);
    same_slice(i, 1);
  }
  Number value = field::multiply(number(0), function(0, 1, inputs()));
  ValueSymbol slice;
  if (in(1).symbol.of > 1 && cut_of(call_, module_) == ParameterCut::kRows) {
    same_slice(0, 1);
    value = field::multiply(value, slice_part(in(1).symbol));
  } else {
    not_sliced(0);
    slice = in(1).symbol;
  }
  set_sliced(0, value, 0, slice);
}

/// (dy, x) -> dweights..., dbiases...
void Rule::matmul_grad_weight() {
  same_tokens(0, 1);
  if (in(0).symbol.of > 1 && in(1).symbol.of > 1) {
    wrong("both the output gradient and the input are slices of their rows");
  }
  const Number tokens = token_part(1);
  const ValueSymbol& slice = in(0).symbol.of > 1 ? in(0).symbol : in(1).symbol;
  for (std::size_t k = 0; k < outputs(); ++k) {
    const bool is_weight = k < weights();
    const Number unit = is_weight ? function(k, 1, 2) : shared(Work::kBiasGrad, k - weights());
    set_whole(k,
              field::multiply(field::multiply(number(0), unit), tokens),
              is_weight ? slice : in(0).symbol);
  }
}

/// (y, bias) -> y.
void Rule::bias() {
  from_start(1);
  same_slice(0, 1);
  set(0, field::add(number(0), shared(Work::kBias, 0, number(1))), 0);
}

void Rule::bias_grad() {
  const Number part = token_part(0, module_.outputs.front());
  for (std::size_t k = 0; k < outputs(); ++k) {
    const Number unit = shared(Work::kBiasGrad, k);
    set_whole(k, field::multiply(field::multiply(number(0), unit), part), in(0).symbol);
  }
}

// ---- norms, positions in attention, attention --------------------------------------------------

/// (x, weight(s), bias?) -> y, statistics. A head norm works inside heads, so slices may stay.
void Rule::norm() {
  if (module_.kind != ModuleKind::kHeadNorm) {
    not_sliced(0);
  }
  for (std::size_t i = 1; i < inputs(); ++i) {
    from_start(i);
    not_sliced(i);
  }
  for (std::size_t k = 0; k < outputs(); ++k) {
    set(k, function(k, 0, k == 0 ? inputs() : 1), 0);
  }
}

/// (dy, x, statistics, weight(s)) -> dx, dweight(s), dbias?
void Rule::norm_grad() {
  same_tokens(0, 1);
  same_tokens(1, 2);
  same_slice(0, 1);
  same_slice(1, 2);
  for (std::size_t i = 3; i < inputs(); ++i) {
    from_start(i);
    not_sliced(i);
  }
  set(0, field::multiply(number(0), function(0, 1, inputs())), 0);
  const Number part = field::multiply(token_part(1), slice_part(in(1).symbol));
  for (std::size_t k = 1; k < outputs(); ++k) {
    set_whole(k, field::multiply(field::multiply(number(0), function(k, 1, 3)), part));
  }
}

/// Rotation: linear, depends on the position of each token.
void Rule::rope(bool backward) {
  from_start(0);
  const Number rotation = shared(Work::kRope, backward ? 1 : 0);
  set(0, field::multiply(number(0), rotation), 0);
}

/// qkv -> y, probabilities, mask?, dropped? (plain) or y, lse (flash).
void Rule::attention() {
  from_start(0);
  const Number mask = call_.graph->dropout && op_.work == Work::kAttention && outputs() > 2
                          ? shared(Work::kDropout,
                                   static_cast<std::size_t>(call_.data),
                                   static_cast<Number>(op_.microbatch) + 1)
                          : 0;
  for (std::size_t k = 0; k < outputs(); ++k) {
    const bool depends_on_mask = mask != 0 && (k == 0 || k == 3);
    const Number value = k == 2 && mask != 0 ? mask : function(k, 0, 1);
    set(k, depends_on_mask ? field::multiply(value, mask) : value, 0);
  }
}

/// (dy, qkv, saved...) -> dqkv.
void Rule::attention_grad() {
  for (std::size_t i = 0; i < inputs(); ++i) {
    from_start(i);
    same_slice(0, i);
  }
  set(0, field::multiply(number(0), function(0, 1, inputs())), 0);
}

// ---- row by row --------------------------------------------------------------------------------

void Rule::activation() {
  set(0, function(0, 0, 1), 0);
}

void Rule::activation_grad() {
  same_tokens(0, 1);
  same_slice(0, 1);
  set(0, field::multiply(number(0), function(0, 1, 2)), 1);
}

/// x -> y, mask. The mask is a function of module, micro-batch and data-parallel coordinate.
void Rule::dropout() {
  const Number mask = shared(Work::kDropout,
                             static_cast<std::size_t>(call_.data),
                             static_cast<Number>(op_.microbatch) + 1);
  set(0, field::multiply(number(0), mask), 0);
  if (outputs() > 1) {
    set(1, mask, 0);
  }
}

void Rule::dropout_grad() {
  same_tokens(0, 1);
  same_slice(0, 1);
  set(0, field::multiply(number(0), number(1)), 0);
}

// ---- batch norm --------------------------------------------------------------------------------

void Rule::bn_sums() {
  from_start(0);
  set_whole(0, function(0, 0, 1));
}

/// Training: (x, sums, weight, bias, running) -> y, running. Evaluation has no sums; what the
/// running statistics are is not followed there.
void Rule::bn_apply() {
  if (op_.phase == Phase::kEvaluate) {
    const std::size_t weight = inputs() > 4 ? 2 : 1;
    field::Hash hash(function(0, 0, 1));
    set(0, hash.add(number(weight)).add(number(weight + 1)).number(), 0);
    if (outputs() > 1) {
      set_whole(1, number(inputs() - 1));
    }
    return;
  }
  set(0, function(0, 0, 4), 0);
  if (outputs() > 1 && inputs() > 4) {
    set_whole(1, field::Hash(number(4)).add(number(1)).number());
  }
}

void Rule::bn_grad_sums() {
  from_start(0);
  set_whole(0, field::multiply(number(0), function(0, 1, 3)));
}

/// (dy, x, sums, local gsums, gsums, weight) -> dx, dweight, dbias. dx also depends on the
/// gradients of the other rows of the batch, through gsums; dweight and dbias are local sums.
void Rule::bn_grad_apply() {
  const std::size_t weight = inputs() - 1;
  const Number saved = field::Hash(function(0, 1, 3)).add(number(weight)).number();
  const Number own = field::multiply(number(0), saved);
  const Number others = field::multiply(number(weight - 1), field::Hash(saved).number());
  set(0, field::add(own, others), 0);
  for (std::size_t k = 1; k < outputs(); ++k) {
    set_whole(k, field::multiply(number(3), function(k, 1, 3)));
  }
}

// ---- mixture of experts ------------------------------------------------------------------------

void Rule::route() {
  for (std::size_t k = 0; k < outputs(); ++k) {
    set(k, function(k, 0, 1), 0);
  }
}

void Rule::route_grad() {
  same_tokens(0, 1);
  set(0, field::multiply(number(0), function(0, 1, 3)), 1);
}

/// (x, experts) -> rows sorted by expert. Rows of some tokens are not a range of the rows of all
/// tokens, hence `from_start`.
void Rule::dispatch() {
  same_tokens(0, 1);
  from_start(0);
  set(0, field::multiply(number(0), function(0, 1, 2)), 0);
}

void Rule::dispatch_grad() {
  from_start(0);
  set(0, field::multiply(number(0), function(0, 1, 2)), 0);
}

/// (rows, weights, experts) -> y. Linear in the rows, so parts stay parts.
void Rule::combine() {
  from_start(0);
  from_start(1);
  set(0, field::multiply(number(0), function(0, 1, 3)), 0);
}

void Rule::combine_grad() {
  from_start(0);
  from_start(1);
  set(0, field::multiply(number(0), function(0, 2, 4)), 1);
  if (outputs() > 1) {
    set(1, field::multiply(field::multiply(number(0), number(1)), function(1, 3, 4)), 2);
  }
}

// ---- loss --------------------------------------------------------------------------------------

/// logits -> max of the vocabulary slice that this rank has.
void Rule::loss_local_max() {
  set(0, function(0, 0, 1), 0);
}

/// (logits, max, labels) -> sum of exp, target logit: parts over the vocabulary.
void Rule::loss_local_sums() {
  same_tokens(0, 1);
  same_tokens(0, 2);
  not_sliced(1);
  const Number part = slice_part(in(0).symbol);
  set_sliced(0, field::multiply(function(0, 0, 2), part), 0, {});
  set_sliced(1, field::multiply(function(1, 0, 3), part), 0, {});
}

/// (logits, max, sums, target, labels) -> loss, dlogits. Both are means over the micro-batch, or
/// sums times 1 / (tokens of all ranks and micro-batches).
void Rule::loss_finish() {
  for (std::size_t i = 1; i < inputs(); ++i) {
    same_tokens(0, i);
    not_sliced(i);
  }
  const Number weight = call_.by_tokens ? token_count_number(number(4)) : 1;
  const Number part = token_part(0);
  const Number scale = field::multiply(weight, call_.factor);
  set_whole(0, field::multiply(field::multiply(function(0, 1, 5), part), scale));
  if (outputs() > 1) {
    set(1, field::multiply(field::Hash(function(1, 0, 3)).add(number(4)).number(), scale), 0);
  }
}

}  // namespace

bool has_value_rule(Work work) {
  return (work >= Work::kEmbedding && work <= Work::kDropoutGrad) ||
         (work >= Work::kBnSums && work <= Work::kLossFinish);
}

field::Number token_count_number(field::Number labels) {
  return field::Hash(static_cast<std::uint64_t>(Work::kCountTokens)).add(labels).number();
}

namespace {

void dispatch_forward(Rule& rule, Work work) {
  switch (work) {
    case Work::kEmbedding:
      return rule.embedding();
    case Work::kPosition:
      return rule.position();
    case Work::kMatmul:
      return rule.matmul();
    case Work::kBias:
      return rule.bias();
    case Work::kNorm:
      return rule.norm();
    case Work::kRope:
      return rule.rope(false);
    case Work::kAttention:
    case Work::kFlashAttention:
      return rule.attention();
    case Work::kGelu:
    case Work::kRelu:
    case Work::kSwiGlu:
      return rule.activation();
    case Work::kDropout:
      return rule.dropout();
    case Work::kBnSums:
      return rule.bn_sums();
    case Work::kBnApply:
      return rule.bn_apply();
    case Work::kRoute:
      return rule.route();
    case Work::kDispatch:
      return rule.dispatch();
    case Work::kCombine:
      return rule.combine();
    case Work::kLossLocalMax:
      return rule.loss_local_max();
    case Work::kLossLocalSums:
      return rule.loss_local_sums();
    case Work::kLossFinish:
      return rule.loss_finish();
    default:
      LOCKSTEP_CHECK(false, "work has no value rule");
  }
}

bool dispatch_backward(Rule& rule, Work work) {
  switch (work) {
    case Work::kEmbeddingGrad:
      rule.embedding_grad();
      return true;
    case Work::kPositionGrad:
      rule.position_grad();
      return true;
    case Work::kMatmulGradInput:
      rule.matmul_grad_input();
      return true;
    case Work::kMatmulGradWeight:
      rule.matmul_grad_weight();
      return true;
    case Work::kBiasGrad:
      rule.bias_grad();
      return true;
    case Work::kNormGrad:
      rule.norm_grad();
      return true;
    case Work::kRopeGrad:
      rule.rope(true);
      return true;
    case Work::kAttentionGrad:
    case Work::kFlashAttentionGrad:
      rule.attention_grad();
      return true;
    case Work::kGeluGrad:
    case Work::kReluGrad:
    case Work::kSwiGluGrad:
      rule.activation_grad();
      return true;
    case Work::kDropoutGrad:
      rule.dropout_grad();
      return true;
    case Work::kBnGradSums:
      rule.bn_grad_sums();
      return true;
    case Work::kBnGradApply:
      rule.bn_grad_apply();
      return true;
    case Work::kRouteGrad:
      rule.route_grad();
      return true;
    case Work::kDispatchGrad:
      rule.dispatch_grad();
      return true;
    case Work::kCombineGrad:
      rule.combine_grad();
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string apply_value_rule(ValueCall& call) {
  Rule rule(call);
  if (!dispatch_backward(rule, call.op->work)) {
    dispatch_forward(rule, call.op->work);
  }
  return rule.take_problem();
}

}  // namespace lockstep
