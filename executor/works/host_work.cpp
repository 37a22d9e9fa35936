// Work of the host: batches, counts, descriptions, what is reported and saved.
#include <algorithm>
#include <vector>

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

/// Labels that count in this rank's micro-batches of the step.
void count_tokens(const WorkCall& call) {
  const TrainingSpec& training = call.training;
  *call.out[0].as<std::int64_t>() = call.host.counted_labels(
      {call.place, training.accumulate, training.micro_batch, training.seq_len});
}

/// What DDP's ranks tell each other about the model: how many parameters there are, their sizes and
/// strides (int64), or the order of gradients in buckets (int32). All ranks of a run have one plan,
/// so nothing follows from it but the traffic.
void describe(const WorkCall& call) {
  std::vector<std::int64_t> numbers;
  if (call.out[0].elements == 1) {
    numbers.push_back(call.graph.parameter_total());
  }
  for (std::int32_t id = 0; id < call.graph.parameter_total(); ++id) {
    const ParameterDef& parameter = call.graph.parameter(id);
    numbers.push_back(parameter.rows);
    if (!parameter.vector) {
      numbers.insert(numbers.end(), {parameter.columns, parameter.columns});
    }
    numbers.push_back(1);
  }
  for (std::int64_t i = 0; i < call.out[0].elements; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (call.out[0].dtype == DType::kInt64) {
      call.out[0].as<std::int64_t>()[i] = at < numbers.size() ? numbers[at] : 0;
    } else {
      call.out[0].as<std::int32_t>()[i] = static_cast<std::int32_t>(i);
    }
  }
}

void write_shard(const WorkCall& call) {
  if (call.layout == nullptr) {
    return call.host.statistics({call.place, call.op.module, call.in[0]});
  }
  call.host.shard({call.place,
                   *call.layout,
                   call.layout_coordinate,
                   call.tensor_degree,
                   call.tensor_coordinate,
                   call.in});
}

/// Every parameter took part in the loss: a plan with others is refused.
void used_map(const WorkCall& call) {
  std::fill_n(call.out[0].as<std::int32_t>(), call.out[0].elements, 1);
}

}  // namespace

void run_host_work(const WorkCall& call) {
  switch (call.op.work) {
    case Work::kLoadBatch:
      return load_batch(call);
    case Work::kCountTokens:
      return count_tokens(call);
    case Work::kDescribeModel:
      return describe(call);
    case Work::kUsedMap:
      return used_map(call);
    case Work::kReadScalar:
      return with_real(call.in[0].dtype, [&]<typename T>(T*) {
        call.host.loss(call.place, static_cast<double>(*call.in[0].as<T>()));
      });
    case Work::kWriteShard:
      return write_shard(call);
    case Work::kCommit:
      return call.host.commit(call.place);
    default:
      return;  // kExpectIssued: every operation of a finished step was issued
  }
}

}  // namespace lockstep::exec
