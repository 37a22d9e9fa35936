// Value rules of norms, attention, activations, experts and the loss.
#include "core/check/value_rule.h"

namespace lockstep {

using field::Number;

// ---- norms, positions in attention, attention --------------------------------------------------

/// (x, weight(s), bias?) -> y, statistics. A head norm works inside heads, so slices may stay.
void ValueRule::norm() {
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
void ValueRule::norm_grad() {
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
void ValueRule::rope() {
  from_start(0);
  set(0, field::multiply(number(0), function(0)), 0);
}

/// qkv -> y, probabilities, mask?, dropped? (plain) or y, lse (flash).
void ValueRule::attention() {
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
void ValueRule::attention_grad() {
  for (std::size_t i = 0; i < inputs(); ++i) {
    from_start(i);
    same_slice(0, i);
  }
  set(0, field::multiply(number(0), function(0, 1, inputs())), 0);
}

// ---- row by row --------------------------------------------------------------------------------

void ValueRule::activation() {
  set(0, function(0, 0, 1), 0);
}

void ValueRule::activation_grad() {
  same_tokens(0, 1);
  same_slice(0, 1);
  set(0, field::multiply(number(0), function(0, 1, 2)), 1);
}

/// x -> y, mask. The mask is a function of module, micro-batch and data-parallel coordinate.
void ValueRule::dropout() {
  const Number mask = shared(Work::kDropout,
                             static_cast<std::size_t>(call_.data),
                             static_cast<Number>(op_.microbatch) + 1);
  set(0, field::multiply(number(0), mask), 0);
  if (outputs() > 1) {
    set(1, mask, 0);
  }
}

void ValueRule::dropout_grad() {
  same_tokens(0, 1);
  same_slice(0, 1);
  set(0, field::multiply(number(0), number(1)), 0);
}

// ---- batch norm --------------------------------------------------------------------------------

void ValueRule::bn_sums() {
  from_start(0);
  set_whole(0, function(0, 0, 1));
}

/// Training: (x, sums, weight, bias, running) -> y, running. Evaluation has no sums; what the
/// running statistics are is not followed there.
void ValueRule::bn_apply() {
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

void ValueRule::bn_grad_sums() {
  from_start(0);
  set_whole(0, field::multiply(number(0), function(0, 1, 3)));
}

/// (dy, x, sums, local gsums, gsums, weight) -> dx, dweight, dbias. dx also depends on the
/// gradients of the other rows of the batch, through gsums; dweight and dbias are local sums.
void ValueRule::bn_grad_apply() {
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

void ValueRule::route() {
  for (std::size_t k = 0; k < outputs(); ++k) {
    set(k, function(k, 0, 1), 0);
  }
}

void ValueRule::route_grad() {
  same_tokens(0, 1);
  set(0, field::multiply(number(0), function(0, 1, 3)), 1);
}

/// (x, experts) -> rows sorted by expert. Rows of some tokens are not a range of the rows of all
/// tokens, hence `from_start`.
void ValueRule::dispatch() {
  same_tokens(0, 1);
  from_start(0);
  set(0, field::multiply(number(0), function(0, 1, 2)), 0);
}

void ValueRule::dispatch_grad() {
  from_start(0);
  set(0, field::multiply(number(0), function(0, 1, 2)), 0);
}

/// (rows, weights, experts) -> y. Linear in the rows, so parts stay parts.
void ValueRule::combine() {
  from_start(0);
  from_start(1);
  set(0, field::multiply(number(0), function(0, 1, 3)), 0);
}

void ValueRule::combine_grad() {
  from_start(0);
  from_start(1);
  set(0, field::multiply(number(0), function(0, 2, 4)), 1);
  if (outputs() > 1) {
    set(1, field::multiply(field::multiply(number(0), number(1)), function(1, 3, 4)), 2);
  }
}

// ---- loss --------------------------------------------------------------------------------------

/// logits -> max of the vocabulary slice that this rank has.
void ValueRule::loss_local_max() {
  set(0, function(0, 0, 1), 0);
}

/// (logits, max, labels) -> sum of exp, target logit: parts over the vocabulary.
void ValueRule::loss_local_sums() {
  same_tokens(0, 1);
  same_tokens(0, 2);
  not_sliced(1);
  const Number part = slice_part(in(0).symbol);
  set_sliced(0, field::multiply(function(0, 0, 2), part), 0, {});
  set_sliced(1, field::multiply(function(1, 0, 3), part), 0, {});
}

/// (logits, max, sums, target, labels) -> loss, dlogits. Both are means over the micro-batch, or
/// sums times 1 / (tokens of all ranks and micro-batches).
void ValueRule::loss_finish() {
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

}  // namespace lockstep
