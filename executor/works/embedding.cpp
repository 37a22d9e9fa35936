// Token embedding, learned and rotary positions.
#include "kernels/cpu/embedding.h"

#include "executor/rope_cache.h"
#include "executor/work_call.h"
#include "kernels/cpu/dispatch.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;

template <typename T>
void run_typed(const WorkCall& call) {
  const cpu::Embedding<T>& kernels = cpu::best<cpu::Embedding<T>>();
  const Operand* in = call.in.data();
  const Operand* out = call.out.data();
  const std::int64_t rows = call.extent(1);
  const cpu::EmbeddingShape words{
      call.extent(0), rows, call.extent(2), call.tensor_coordinate * rows};
  switch (call.op.work) {
    case Work::kEmbedding:
      return kernels.embedding(in[0].as<std::int64_t>(), in[1].as<T>(), out[0].as<T>(), words);
    case Work::kEmbeddingGrad:
      return kernels.embedding_grad(
          in[0].as<T>(), in[1].as<std::int64_t>(), out[0].as<T>(), call.accumulates(), words);
    default:
      break;
  }
  const std::int64_t seq = call.training.seq_len;
  if (call.op.work == Work::kPosition || call.op.work == Work::kPositionGrad) {
    const std::int64_t m = call.extent(0);
    const std::int64_t h = call.extent(1);
    const bool forward = call.op.work == Work::kPosition;
    const std::int64_t table = (forward ? in[1] : out[0]).elements / h;
    const cpu::PositionShape places{m, h, seq, call.first_token(m), table};
    return forward
               ? kernels.position(out[0].as<T>(), in[1].as<T>(), places)
               : kernels.position_grad(in[0].as<T>(), out[0].as<T>(), call.accumulates(), places);
  }
  const std::int64_t m = call.extent(0) * call.extent(1);
  const cpu::RopeShape turn{m, call.extent(1), 0, {call.extent(2), call.extent(3), call.extent(4)}};
  const cpu::RopeTable<T> table =
      rope_table<T>({call.extent(1), call.extent(4), call.graph.model.rope_theta, 1});
  return call.op.work == Work::kRope ? kernels.rope(out[0].as<T>(), table, turn)
                                     : kernels.rope_grad(out[0].as<T>(), table, turn);
}

}  // namespace

void run_embedding(const WorkCall& call) {
  const DType dtype = call.op.work == Work::kEmbeddingGrad ? call.in[0].dtype : call.out[0].dtype;
  with_real(dtype, [&]<typename T>(T*) { run_typed<T>(call); });
}

}  // namespace lockstep::exec
