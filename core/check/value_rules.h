// Value rules: what each mathematical work does to symbols.
//
// Forward works are unknown functions: output = hash(work, module, inputs). Backward works are
// unknown functions too, but linear in the incoming gradient: output = gradient * hash(module,
// saved inputs). Operands that are slices (of width, over tensor-parallel ranks) or ranges of
// tokens give slices, ranges, or parts of a sum, by the algebra of the work: the product of a
// row-cut weight is a part, the weight gradient of a range of tokens is a part, and parts of all
// ranks add up to the whole (field::part).
//
// Linear bookkeeping (add, scale, pack, collectives) is exact and lies in value_machine.cpp.
#pragma once

#include <span>
#include <string>

#include "core/check/value_memory.h"
#include "core/model_graph.h"
#include "core/plan.h"

namespace lockstep {

/// An operand seen as one tensor.
struct ValueTensor {
  ValueSymbol symbol;
  std::int64_t elements = 0;
};

/// One work on one rank.
struct ValueCall {
  const ModelGraph* graph = nullptr;
  const Operation* op = nullptr;
  std::span<const ValueTensor> inputs;
  std::span<ValueTensor> outputs;  ///< elements are given, symbols are set
  int data = 0;                    ///< data-parallel coordinate: whose samples
  int tensor_index = 0;            ///< tensor-parallel coordinate and degree
  int tensor_degree = 1;
  std::int64_t tokens = 0;   ///< of a micro-batch, all ranks of a tensor-parallel group together
  field::Number factor = 1;  ///< the operation's scalar
  bool by_tokens = false;    ///< the scalar is 1 / (tokens of all), so sums are meant, not means
};

/// True for works that take whole tensors and are in the table of value_rules.cpp.
bool has_value_rule(Work work);

/// Sets the symbols of the outputs. Returns what is wrong with the operands, empty if nothing.
std::string apply_value_rule(ValueCall& call);

/// Stands for the number of valid tokens among these labels.
field::Number token_count_number(field::Number labels);

}  // namespace lockstep
