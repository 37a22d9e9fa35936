#include "core/check/value_rules.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/check/value_rule.h"
#include "core/layout.h"

namespace lockstep {

using field::Number;

// ---- helpers -----------------------------------------------------------------------------------

Number ValueRule::function(std::size_t k, std::size_t first, std::size_t last) const {
  field::Hash hash(static_cast<std::uint64_t>(op_.work));
  hash.add(op_.module).add(k);
  for (std::size_t i = first; i < last; ++i) {
    hash.add(number(i));
  }
  return hash.number();
}

Number ValueRule::shared(Work work, std::size_t k, Number argument) const {
  return field::Hash(static_cast<std::uint64_t>(work) + 1000)
      .add(op_.module)
      .add(k)
      .add(argument)
      .number();
}

void ValueRule::wrong(std::string text) {
  if (problem_.empty()) {
    problem_ = std::move(text);
  }
}

std::string slice_text(const ValueSymbol& symbol) {
  return symbol.of == 1 ? "whole rows" : fmt::format("slice {} of {}", symbol.index, symbol.of);
}

void ValueRule::same_tokens(std::size_t i, std::size_t j) {
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

void ValueRule::same_slice(std::size_t i, std::size_t j) {
  if (!in(i).symbol.same_slice(in(j).symbol)) {
    wrong(fmt::format("operand {} is {}, operand {} is {}",
                      i,
                      slice_text(in(i).symbol),
                      j,
                      slice_text(in(j).symbol)));
  }
}

void ValueRule::not_sliced(std::size_t i) {
  if (in(i).symbol.of != 1) {
    wrong(fmt::format("operand {} is {}, needed whole", i, slice_text(in(i).symbol)));
  }
}

void ValueRule::from_start(std::size_t i) {
  if (in(i).symbol.begin != 0) {
    wrong(fmt::format(
        "operand {} begins at element {} of its tensor, needed in full", i, in(i).symbol.begin));
  }
}

Number ValueRule::token_part(std::size_t i, std::int8_t tensor) const {
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

void ValueRule::set(std::size_t k, Number value, std::size_t like) {
  set_sliced(k, value, like, in(like).symbol);
}

void ValueRule::set_sliced(std::size_t k,
                           Number value,
                           std::size_t like,
                           const ValueSymbol& slice) {
  ValueTensor& output = call_.outputs[k];
  const std::int64_t elements = std::max<std::int64_t>(in(like).elements, 1);
  // Both hold the same rows, so places scale with the row length.
  output.symbol = {
      value, in(like).symbol.begin * output.elements / elements, slice.index, slice.of};
}

void ValueRule::set_whole(std::size_t k, Number value, const ValueSymbol& slice) {
  call_.outputs[k].symbol = {value, 0, slice.index, slice.of};
}

// ---- the table ---------------------------------------------------------------------------------

namespace {

using Apply = void (ValueRule::*)();

/// By work; null for works without a rule.
constexpr std::array<Apply, 64> rule_table() {
  std::array<Apply, 64> table{};
  const auto set = [&](Work work, Apply apply) { table[static_cast<std::size_t>(work)] = apply; };
  set(Work::kEmbedding, &ValueRule::embedding);
  set(Work::kEmbeddingGrad, &ValueRule::embedding_grad);
  set(Work::kPosition, &ValueRule::position);
  set(Work::kPositionGrad, &ValueRule::position_grad);
  set(Work::kMatmul, &ValueRule::matmul);
  set(Work::kMatmulGradInput, &ValueRule::matmul_grad_input);
  set(Work::kMatmulGradWeight, &ValueRule::matmul_grad_weight);
  set(Work::kBias, &ValueRule::bias);
  set(Work::kBiasGrad, &ValueRule::bias_grad);
  set(Work::kNorm, &ValueRule::norm);
  set(Work::kNormGrad, &ValueRule::norm_grad);
  set(Work::kRope, &ValueRule::rope);
  set(Work::kRopeGrad, &ValueRule::rope);
  set(Work::kAttention, &ValueRule::attention);
  set(Work::kAttentionGrad, &ValueRule::attention_grad);
  set(Work::kFlashAttention, &ValueRule::attention);
  set(Work::kFlashAttentionGrad, &ValueRule::attention_grad);
  set(Work::kGelu, &ValueRule::activation);
  set(Work::kGeluGrad, &ValueRule::activation_grad);
  set(Work::kRelu, &ValueRule::activation);
  set(Work::kReluGrad, &ValueRule::activation_grad);
  set(Work::kSwiGlu, &ValueRule::activation);
  set(Work::kSwiGluGrad, &ValueRule::activation_grad);
  set(Work::kDropout, &ValueRule::dropout);
  set(Work::kDropoutGrad, &ValueRule::dropout_grad);
  set(Work::kBnSums, &ValueRule::bn_sums);
  set(Work::kBnApply, &ValueRule::bn_apply);
  set(Work::kBnGradSums, &ValueRule::bn_grad_sums);
  set(Work::kBnGradApply, &ValueRule::bn_grad_apply);
  set(Work::kRoute, &ValueRule::route);
  set(Work::kRouteGrad, &ValueRule::route_grad);
  set(Work::kDispatch, &ValueRule::dispatch);
  set(Work::kDispatchGrad, &ValueRule::dispatch_grad);
  set(Work::kCombine, &ValueRule::combine);
  set(Work::kCombineGrad, &ValueRule::combine_grad);
  set(Work::kLossLocalMax, &ValueRule::loss_local_max);
  set(Work::kLossLocalSums, &ValueRule::loss_local_sums);
  set(Work::kLossFinish, &ValueRule::loss_finish);
  return table;
}

constexpr std::array<Apply, 64> kRules = rule_table();
static_assert(static_cast<std::size_t>(Work::kCommit) < kRules.size());

}  // namespace

bool has_value_rule(Work work) {
  return kRules[static_cast<std::size_t>(work)] != nullptr;
}

field::Number token_count_number(field::Number labels) {
  return field::Hash(static_cast<std::uint64_t>(Work::kCountTokens)).add(labels).number();
}

std::string apply_value_rule(ValueCall& call) {
  ValueRule rule(call);
  (rule.*kRules[static_cast<std::size_t>(call.op->work)])();
  return rule.take_problem();
}

}  // namespace lockstep
