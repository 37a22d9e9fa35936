// Value rules of embeddings, positions and linear modules.
#include <fmt/format.h>

#include "core/check/value_rule.h"

namespace lockstep {

using field::Number;

// ---- embedding and positions -------------------------------------------------------------------

/// (tokens, weight) -> y. Each rank of a row-cut table finds some of the tokens: a part.
void ValueRule::embedding() {
  from_start(1);
  not_sliced(0);
  const Number value = function(0, 0, 2);
  set_sliced(0, field::multiply(value, slice_part(in(1).symbol)), 0, {});
}

/// (dy, tokens) -> dweight, of the rows that this rank has.
void ValueRule::embedding_grad() {
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

void ValueRule::position() {
  from_start(1);
  not_sliced(0);
  set(0, function(0, 0, 2), 0);
}

void ValueRule::position_grad() {
  not_sliced(0);
  set_whole(0,
            field::multiply(field::multiply(number(0), function(0)),
                            token_part(0, module_.outputs.front())));
}

// ---- linear ------------------------------------------------------------------------------------

namespace {

ParameterCut cut_of(const ValueCall& call, const ModuleDef& module) {
  const Segment& segment = call.graph->segment_of(call.op->module);
  return call.graph->parameter(segment.first_parameter + module.parameters.front()).cut;
}

}  // namespace

/// (x, weights..., biases...) -> y.
void ValueRule::matmul() {
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
void ValueRule::matmul_grad_input() {
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
void ValueRule::matmul_grad_weight() {
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
void ValueRule::bias() {
  from_start(1);
  same_slice(0, 1);
  set(0, field::add(number(0), shared(Work::kBias, 0, number(1))), 0);
}

void ValueRule::bias_grad() {
  const Number part = token_part(0, module_.outputs.front());
  for (std::size_t k = 0; k < outputs(); ++k) {
    const Number unit = shared(Work::kBiasGrad, k);
    set_whole(k, field::multiply(field::multiply(number(0), unit), part), in(0).symbol);
  }
}

}  // namespace lockstep
