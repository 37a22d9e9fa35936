// Work of the host: batches, counts, descriptions, what is reported and saved.
#include <algorithm>

#include "executor/work_call.h"

namespace lockstep::exec {
namespace {

void load_batch(const WorkCall& call) {
  BatchRequest request;
  request.place = call.place;
  request.replicas = call.extent(0) / call.training.micro_batch;
  request.samples = call.training.micro_batch;
  request.seq = call.extent(1);
  // What the loss reads alone are labels; the first stage's first output is what the model reads.
  const bool labels_only = call.module().kind == ModuleKind::kLoss;
  const Operand* out = call.out.data();
  request.inputs = labels_only ? nullptr : out;
  request.labels = labels_only ? out : call.out.size() > 1 ? out + 1 : nullptr;
  call.host.load(request);
}

/// Tokens of this rank's micro-batches of the step; every one of them has a label.
void count_tokens(const WorkCall& call) {
  *call.out[0].as<std::int64_t>() =
      call.training.accumulate * call.training.micro_batch * call.training.seq_len;
}

/// Counts, sizes and strides that ranks compare. All ranks of a run are given the same plan, so the
/// numbers only have to travel: 1 for each.
void describe(const WorkCall& call) {
  const auto fill = [&]<typename T>(T*) {
    std::fill(call.out[0].as<T>(), call.out[0].as<T>() + call.out[0].elements, T{1});
  };
  call.out[0].dtype == DType::kInt64 ? fill(static_cast<std::int64_t*>(nullptr))
                                     : fill(static_cast<std::int32_t*>(nullptr));
}

}  // namespace

void run_host_work(const WorkCall& call) {
  switch (call.op.work) {
    case Work::kLoadBatch:
      return load_batch(call);
    case Work::kCountTokens:
      return count_tokens(call);
    case Work::kDescribeModel:
    case Work::kUsedMap:
      return describe(call);
    case Work::kReadScalar:
      return with_real(call.in[0].dtype, [&]<typename T>(T*) {
        call.host.loss(call.place, static_cast<double>(*call.in[0].as<T>()));
      });
    case Work::kWriteShard:
      return call.host.shard({call.place,
                              *call.layout,
                              call.layout_coordinate,
                              call.tensor_degree,
                              call.tensor_coordinate,
                              call.in});
    case Work::kCommit:
      return call.host.commit(call.place);
    default:
      return;  // kExpectIssued: every operation of a finished step was issued
  }
}

}  // namespace lockstep::exec
