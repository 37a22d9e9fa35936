#include "core/plan.h"

#include <algorithm>

#include "core/check.h"

namespace lockstep {
namespace {

template <typename Enum, std::size_t N>
std::string_view lookup(const std::string_view (&names)[N], Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("?");
}

}  // namespace

const Section* Plan::find(SectionKind kind, int variant) const {
  for (const Section& section : sections) {
    if (section.kind == kind && (kind != SectionKind::kStep || section.variant == variant)) {
      return &section;
    }
  }
  return nullptr;
}

const Section& Plan::step(int iteration) const {
  LOCKSTEP_CHECK(!variant_of_iteration.empty() && iteration >= 0, "plan has no step");
  const auto last = static_cast<int>(variant_of_iteration.size()) - 1;
  const int variant = variant_of_iteration[static_cast<std::size_t>(std::min(iteration, last))];
  const Section* section = find(SectionKind::kStep, variant);
  LOCKSTEP_CHECK(section != nullptr, "plan lacks a step variant");
  return *section;
}

std::int64_t Plan::operation_count() const {
  std::int64_t count = 0;
  for (const Section& section : sections) {
    for (const Program& program : section.programs) {
      count += static_cast<std::int64_t>(program.operations.size());
    }
  }
  return count;
}

std::string_view name_of(OperationKind kind) {
  static constexpr std::string_view kNames[] = {
      "compute", "collective", "send", "recv", "copy", "alloc", "free", "host"};
  return lookup(kNames, kind);
}

std::string_view name_of(Collective collective) {
  static constexpr std::string_view kNames[] = {"all_reduce",
                                                "all_gather",
                                                "reduce_scatter",
                                                "broadcast",
                                                "reduce",
                                                "gather",
                                                "scatter",
                                                "all_to_all",
                                                "barrier"};
  return lookup(kNames, collective);
}

std::string_view name_of(Phase phase) {
  static constexpr std::string_view kNames[] = {"init",
                                                "forward",
                                                "recompute",
                                                "backward",
                                                "backward_input",
                                                "backward_weight",
                                                "reduce",
                                                "clip",
                                                "optimizer",
                                                "evaluate",
                                                "save"};
  return lookup(kNames, phase);
}

std::string_view name_of(Work work) {
  static constexpr std::string_view kNames[] = {"none",
                                                "embedding",
                                                "embedding_grad",
                                                "position",
                                                "position_grad",
                                                "matmul",
                                                "matmul_grad_input",
                                                "matmul_grad_weight",
                                                "bias",
                                                "bias_grad",
                                                "norm",
                                                "norm_grad",
                                                "rope",
                                                "rope_grad",
                                                "attention",
                                                "attention_grad",
                                                "flash_attention",
                                                "flash_attention_grad",
                                                "gelu",
                                                "gelu_grad",
                                                "relu",
                                                "relu_grad",
                                                "swiglu",
                                                "swiglu_grad",
                                                "dropout",
                                                "dropout_grad",
                                                "add",
                                                "scale",
                                                "zero",
                                                "cast",
                                                "pack",
                                                "unpack",
                                                "bn_sums",
                                                "bn_apply",
                                                "bn_grad_sums",
                                                "bn_grad_apply",
                                                "route",
                                                "route_grad",
                                                "dispatch",
                                                "dispatch_grad",
                                                "combine",
                                                "combine_grad",
                                                "loss_local_max",
                                                "loss_local_sums",
                                                "loss_finish",
                                                "unscale_and_check",
                                                "sum_squares",
                                                "clip_coefficient",
                                                "scaler_update",
                                                "sgd",
                                                "momentum",
                                                "adamw",
                                                "adamw_8bit",
                                                "initialize",
                                                "used_map",
                                                "load_batch",
                                                "count_tokens",
                                                "read_scalar",
                                                "describe_model",
                                                "expect_issued",
                                                "write_shard",
                                                "commit"};
  return lookup(kNames, work);
}

std::string_view name_of(Stream stream) {
  static constexpr std::string_view kNames[] = {
      "compute", "data", "data_replica", "tensor", "pipeline", "copy", "host"};
  return lookup(kNames, stream);
}

std::string_view name_of(Reduction reduction) {
  static constexpr std::string_view kNames[] = {"none", "sum", "max", "average"};
  return lookup(kNames, reduction);
}

std::string_view name_of(Category category) {
  static constexpr std::string_view kNames[] = {"parameter",
                                                "gathered_parameter",
                                                "gradient",
                                                "optimizer",
                                                "activation",
                                                "logits",
                                                "communication",
                                                "input",
                                                "temporary"};
  return lookup(kNames, category);
}

std::string_view name_of(SectionKind kind) {
  static constexpr std::string_view kNames[] = {"init", "step", "evaluate", "save"};
  return lookup(kNames, kind);
}

std::vector<int> members(const Mesh& mesh, const Communicator& communicator, int rank) {
  std::vector<int> group = mesh.group(communicator.axes, rank);
  if (communicator.pipeline_coordinates != 0) {
    std::erase_if(group, [&](int member) {
      const int stage = mesh.coordinate(member, Axis::kPipeline);
      return ((communicator.pipeline_coordinates >> static_cast<unsigned>(stage)) & 1U) == 0;
    });
  }
  return group;
}

}  // namespace lockstep
