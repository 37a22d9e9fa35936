#include "core/check/operand_counts.h"

namespace lockstep {
namespace {

constexpr int kMany = OperandCounts::kMany;

/// One line per work, in the order of the enumeration; the comments give what the counts are of.
constexpr OperandCounts kCounts[] = {
    {0, 0, 0, 0},      // none
    {2, 2, 1, 1},      // embedding: tokens, weight -> y
    {2, 2, 1, 1},      // embedding_grad: dy, tokens -> dweight
    {2, 2, 1, 1},      // position: x, weight -> x
    {1, 1, 1, 1},      // position_grad: dy -> dweight
    {2, kMany, 1, 1},  // matmul: x, weight..., bias... -> y
    {2, kMany, 1, 1},  // matmul_grad_input: dy, weight... -> dx
    {2, 2, 1, kMany},  // matmul_grad_weight: dy, x -> dweight..., dbias...
    {2, 2, 1, 1},      // bias: y, bias -> y
    {1, 1, 1, 1},      // bias_grad: dy -> dbias
    {2, 3, 2, 2},      // norm: x, weight, bias? or second weight -> y, statistics
    {4, 5, 2, 3},      // norm_grad: dy, x, statistics, weight... -> dx, dweight, dbias?
    {1, 1, 1, 1},      // rope
    {1, 1, 1, 1},      // rope_grad
    {1, 1, 2, 4},      // attention: qkv -> y, probs, mask?, dropped?
    {3, 5, 1, 1},      // attention_grad: dy, qkv, probs, mask?, dropped? -> dqkv
    {1, 1, 2, 2},      // flash_attention: qkv -> y, lse
    {4, 4, 1, 1},      // flash_attention_grad: dy, qkv, y, lse -> dqkv
    {1, 1, 1, 1},      // gelu
    {2, 2, 1, 1},      // gelu_grad: dy, x -> dx
    {1, 1, 1, 1},      // relu
    {2, 2, 1, 1},      // relu_grad
    {1, 1, 1, 1},      // swiglu: gate_up -> y
    {2, 2, 1, 1},      // swiglu_grad: dy, gate_up -> dgate_up
    {1, 1, 2, 2},      // dropout: x -> y, mask
    {2, 2, 1, 1},      // dropout_grad: dy, mask -> dx
    {2, 2, 1, 1},      // add
    {1, 2, 1, 1},      // scale: x, factor? -> x
    {0, 0, 1, 1},      // zero
    {1, 1, 1, 1},      // cast
    {1, kMany, 1, 1},  // pack: x... -> y
    {1, 1, 1, kMany},  // unpack: x -> y...
    {1, 1, 1, 1},      // bn_sums
    {4, 5, 1, 2},      // bn_apply: x, sums, weight, bias, running -> y, running; evaluate: no sums
    {3, 3, 1, 1},      // bn_grad_sums: dy, x, sums -> gsums
    {6, 6, 3, 3},      // bn_grad_apply: dy, x, sums, local and global gsums, weight -> dx, dw, db
    {1, 1, 2, 2},      // route: logits -> weights, expert ids
    {3, 3, 1, 1},      // route_grad: dweights, logits, expert ids -> dlogits
    {2, 2, 1, 1},      // dispatch: x, expert ids -> rows
    {2, 2, 1, 1},      // dispatch_grad: drows, expert ids -> dx
    {3, 3, 1, 1},      // combine: rows, weights, expert ids -> y
    {4, 4, 2, 2},      // combine_grad: dy, rows, weights, expert ids -> drows, dweights
    {1, 1, 1, 1},      // loss_local_max: logits -> max
    {3, 3, 2, 2},      // loss_local_sums: logits, max, labels -> sum, target logit
    {5,
     7,
     1,
     2},  // loss_finish: logits, max, sums, target, labels, scaler?, tokens? -> loss, dlogits?
    {2, kMany, 2, kMany},  // unscale_and_check: gradients..., scaler state -> flag, gradients...
    {1, kMany, 1, 1},      // sum_squares: gradients... -> sum
    {1, 1, 1, 1},          // clip_coefficient
    {1, 2, 1, 1},          // scaler_update: flag, state? -> state
    {2, 2, 1, 2},          // sgd: parameter, gradient -> parameter, compute parameter?
    {3, 3, 2, 3},          // momentum: ..., velocity
    {4, 4, 3, 4},          // adamw: ..., two moments
    {4, 6, 3, 6},          // adamw_8bit: ..., two moments, their block maxima?
    {0, 0, 1, 1},          // initialize
    {0, 0, 1, 1},          // used_map
    {0, 0, 1, 2},          // load_batch: -> tokens or x, labels
    {0, 0, 1, 1},          // count_tokens
    {1, 1, 0, 0},          // read_scalar
    {0, 0, 1, 1},          // describe_model
    {0, 0, 0, 0},          // expect_issued
    {1, kMany, 0, 0},      // write_shard: x...
    {0, 1, 0, 0},          // commit
};
static_assert(sizeof(kCounts) / sizeof(kCounts[0]) == kWorkCount);

}  // namespace

OperandCounts operand_counts(Work work) {
  return kCounts[static_cast<std::size_t>(work)];
}

OperandCounts operand_counts(const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
      // Parts: one input and one output view each. A rank that is not the root of a gather or
      // reduce has nothing to write, one that is not the root of a broadcast nothing to read.
      return {0, kMany, 0, kMany};
    case OperationKind::kSend:
      return {1, 1, 0, 0};
    case OperationKind::kRecv:
      return {0, 0, 1, 1};
    case OperationKind::kCopy:
      return {1, 1, 1, 1};
    case OperationKind::kAlloc:
    case OperationKind::kFree:
      return {0, 0, 0, 0};
    case OperationKind::kCompute:
    case OperationKind::kHost:
      break;
  }
  return operand_counts(op.work);
}

}  // namespace lockstep
