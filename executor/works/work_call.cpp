#include "executor/work_call.h"

#include "core/error.h"

namespace lockstep::exec {

void run_work(const WorkCall& call) {
  switch (call.op.work) {
    case Work::kNone:
      return;
    case Work::kMatmul:
    case Work::kMatmulGradInput:
    case Work::kMatmulGradWeight:
    case Work::kBias:
    case Work::kBiasGrad:
      return run_linear(call);
    case Work::kEmbedding:
    case Work::kEmbeddingGrad:
    case Work::kPosition:
    case Work::kPositionGrad:
    case Work::kRope:
    case Work::kRopeGrad:
      return run_embedding(call);
    case Work::kNorm:
    case Work::kNormGrad:
      return run_norm(call);
    case Work::kAttention:
    case Work::kAttentionGrad:
    case Work::kFlashAttention:
    case Work::kFlashAttentionGrad:
      return run_attention(call);
    case Work::kGelu:
    case Work::kGeluGrad:
    case Work::kRelu:
    case Work::kReluGrad:
    case Work::kSwiGlu:
    case Work::kSwiGluGrad:
    case Work::kDropout:
    case Work::kDropoutGrad:
    case Work::kAdd:
    case Work::kScale:
    case Work::kZero:
      return run_by_element(call);
    case Work::kCast:
    case Work::kPack:
    case Work::kUnpack:
      return run_pack(call);
    case Work::kBnSums:
    case Work::kBnApply:
    case Work::kBnGradSums:
    case Work::kBnGradApply:
      return run_batch_norm(call);
    case Work::kLossLocalMax:
    case Work::kLossLocalSums:
    case Work::kLossFinish:
      return run_loss(call);
    case Work::kUnscaleAndCheck:
    case Work::kSumSquares:
    case Work::kClipCoefficient:
    case Work::kScalerUpdate:
    case Work::kSgd:
    case Work::kMomentum:
    case Work::kAdamW:
      return run_optimizer(call);
    case Work::kInitialize:
      return run_initialize(call);
    case Work::kUsedMap:
    case Work::kLoadBatch:
    case Work::kCountTokens:
    case Work::kReadScalar:
    case Work::kDescribeModel:
    case Work::kExpectIssued:
    case Work::kWriteShard:
    case Work::kCommit:
      return run_host_work(call);
    case Work::kRoute:
    case Work::kRouteGrad:
    case Work::kDispatch:
    case Work::kDispatchGrad:
    case Work::kCombine:
    case Work::kCombineGrad:
      throw NotSupportedError("executor", "mixtures of experts are simulated, not run: no kernels");
    case Work::kAdamW8bit:
      throw NotSupportedError("executor", "8-bit AdamW is simulated, not run: no kernels");
  }
}

}  // namespace lockstep::exec
