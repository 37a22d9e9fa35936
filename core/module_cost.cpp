#include "core/module_cost.h"

#include <algorithm>

#include "core/layout.h"

namespace lockstep {
namespace {

/// One module with what its formulas need. All sizes in bytes unless they say elements.
class Costing {
 public:
  Costing(const ModelGraph& graph,
          std::uint32_t module,
          const TrainingSpec& training,
          const LocalSizes& sizes)
      : graph_(graph),
        segment_(graph.segment_of(module)),
        form_(graph.form(segment_)),
        index_(static_cast<std::int32_t>(module) - segment_.first_module),
        module_(graph.module(module)),
        training_(training),
        sizes_(sizes) {}

  ModuleCost run() {
    add_work();
    add_gradient_sums();
    add_saved();
    return cost_;
  }

 private:
  void add_work();
  void add_linear();
  void add_embedding();
  void add_position();
  void add_attention_flops();
  void add_rope();
  void add_batch_norm();
  void add_loss();
  void add_plain();
  void add_gradient_sums();
  void add_saved();

  const TensorDef& tensor(std::int8_t index) const {
    return form_.tensors[static_cast<std::size_t>(index)];
  }
  const TensorDef& input() const { return tensor(module_.inputs.front()); }
  const TensorDef& output() const { return tensor(module_.outputs.front()); }
  double bytes(const TensorDef& definition) const {
    return static_cast<double>(elements_of(definition, graph_.model, sizes_) *
                               size_of(dtype_of(definition.type, training_)));
  }
  /// Bytes of the gradient of a tensor; 0 for masks, token ids, statistics and the model's input.
  double gradient_bytes(std::int8_t index) const {
    const TensorDef& definition = tensor(index);
    const bool differentiable = definition.type == TensorType::kActivation && !definition.statistic;
    return differentiable && !is_model_input(index) ? bytes(definition) : 0;
  }
  bool is_model_input(std::int8_t index) const {
    return segment_.first_module == 0 && index == form_.input;
  }
  double parameter_elements(std::int16_t index) const {
    const ParameterDef& definition = form_.parameters[static_cast<std::size_t>(index)];
    return static_cast<double>(local_rows(definition, sizes_.tensor) *
                               local_columns(definition, sizes_.tensor));
  }
  double parameter_elements() const {
    double sum = 0;
    for (const std::int16_t index : module_.parameters) {
      sum += parameter_elements(index);
    }
    return sum;
  }
  double activation_size() const {
    return static_cast<double>(size_of(training_.activation_dtype()));
  }
  double parameter_size() const {
    return static_cast<double>(size_of(training_.parameter_dtype()));
  }
  double gradient_size() const {
    return static_cast<double>(
        size_of(training_.gradient_dtype.value_or(training_.parameter_dtype())));
  }

  const ModelGraph& graph_;
  const Segment& segment_;
  const SegmentTemplate& form_;
  std::int32_t index_;
  const ModuleDef& module_;
  const TrainingSpec& training_;
  const LocalSizes& sizes_;
  ModuleCost cost_;
};

void Costing::add_work() {
  switch (module_.kind) {
    case ModuleKind::kLinear:
      return add_linear();
    case ModuleKind::kEmbedding:
      return add_embedding();
    case ModuleKind::kPosition:
      return add_position();
    case ModuleKind::kRope:
      return add_rope();
    case ModuleKind::kBatchNorm:
      return add_batch_norm();
    case ModuleKind::kLoss:
      return add_loss();
    case ModuleKind::kAttention:
      add_attention_flops();
      return add_plain();
    case ModuleKind::kNorm:
    case ModuleKind::kHeadNorm:
    case ModuleKind::kActivation:
    case ModuleKind::kDropout:
    case ModuleKind::kResidual:
    case ModuleKind::kRouter:
    case ModuleKind::kDispatch:
    case ModuleKind::kCombine:
      return add_plain();
  }
}

/// y (m x n) = x (m x k) W. A cut linear works on all tokens: under sequence parallelism its input
/// is gathered before and its output scattered after it. Experts split the m rows among them.
void Costing::add_linear() {
  const bool column = module_.cut == LinearCut::kColumn;
  const bool row = module_.cut == LinearCut::kRow;
  const std::int64_t tokens =
      column || row || input().region == Region::kWidth ? sizes_.tokens() : sizes_.region_tokens();
  const auto m = static_cast<double>(tokens * input().per_token);
  const std::int64_t t = sizes_.tensor;
  const auto n = static_cast<double>(column ? ceil_divide(output().width, t) : output().width);
  const std::int64_t inner = row ? input().width / t : input().width;
  const auto k = static_cast<double>(inner);
  double weights = 0;
  for (std::int16_t w = 0; w < module_.weights; ++w) {
    weights += parameter_elements(module_.parameters[static_cast<std::size_t>(w)]);
  }
  const double product = 2 * m * n * k;
  const double x_bytes = m * k * activation_size();
  const double y_bytes = m * n * activation_size();
  // Products read weights in the activations' type (autocast: the cached cast).
  const double weight_bytes = weights * activation_size();
  const double biases = parameter_elements() - weights;

  cost_.forward_flops = product;
  cost_.forward_bytes = x_bytes + weight_bytes + biases * parameter_size() + y_bytes;
  cost_.backward_weight_flops = product;
  cost_.backward_bytes = y_bytes + x_bytes + parameter_elements() * gradient_size();
  if (!is_model_input(module_.inputs.front())) {
    cost_.backward_input_flops = product;
    cost_.backward_bytes += y_bytes + weight_bytes + x_bytes;
  }
}

/// Looks up one row per token; with the vocabulary cut, a rank holds 1/t of them and writes zeros
/// for the others. Its gradient is dense: the whole local table is written.
void Costing::add_embedding() {
  const auto elements = static_cast<double>(sizes_.tokens() * output().width);
  const double found = elements / static_cast<double>(sizes_.tensor);
  cost_.forward_bytes = bytes(input()) + found * parameter_size() + elements * activation_size();
  cost_.backward_bytes =
      bytes(input()) + elements * activation_size() + parameter_elements() * gradient_size();
}

/// Adds row i of the table to token i of every sample, in place.
void Costing::add_position() {
  const double rows = static_cast<double>(sizes_.region_tokens()) /
                      static_cast<double>(sizes_.batch);  // read once for the whole batch
  cost_.forward_bytes =
      2 * bytes(output()) + rows * static_cast<double>(output().width) * parameter_size();
  cost_.backward_bytes = bytes(output()) + parameter_elements() * gradient_size();
}

/// Two products forward (Q K^T, P V), each 2 b a s^2 dh; four backward (dV, dP, dQ, dK). Flash
/// attention makes Q K^T again: five, so 2.5 times forward (FlashAttention-2, arXiv:2307.08691
/// section 4.1).
void Costing::add_attention_flops() {
  const ModelSpec& model = graph_.model;
  const std::int64_t local_heads = model.heads / sizes_.tensor;
  const auto heads = static_cast<double>(sizes_.batch * local_heads);
  const auto seq = static_cast<double>(sizes_.seq);
  const double product = 2 * heads * seq * seq * static_cast<double>(model.head_dim);
  cost_.forward_flops = 2 * product;
  cost_.backward_input_flops = (graph_.attention == AttentionKind::kFlash ? 5 : 4) * product;
}

/// Rotates queries and keys in place; values are not touched.
void Costing::add_rope() {
  const auto all = static_cast<double>(graph_.model.query_width() + 2 * graph_.model.kv_width());
  const auto turned = static_cast<double>(graph_.model.query_width() + graph_.model.kv_width());
  cost_.forward_bytes = 2 * bytes(output()) * turned / all;
  cost_.backward_bytes = cost_.forward_bytes;
}

/// Forward: sums of x, then the normalised y and the running mean and variance. Backward: sums of
/// dy and dy x, then dx. Each pass reads its operands again.
void Costing::add_batch_norm() {
  const double x = bytes(input());
  const double sums = bytes(tensor(module_.outputs.back()));
  const auto channels = static_cast<double>(input().width);
  const auto wide = static_cast<double>(size_of(dtype_of(TensorType::kFp32, training_)));
  const double running = 2 * 2 * channels * wide;  // mean and variance, read and written
  const double weight = channels * parameter_size();
  cost_.forward_bytes = (x + sums) + (x + sums + 2 * weight + running + bytes(output()));
  cost_.backward_bytes =
      (2 * x + 2 * sums) + (2 * x + 2 * sums + weight + x) + parameter_elements() * gradient_size();
}

/// Three passes over the logits (maximum; sum of exponentials and target logit; loss), the last of
/// which leaves their gradient in their place: backward has nothing to do.
void Costing::add_loss() {
  const double logits = bytes(input());
  const double labels = bytes(tensor(module_.inputs.back()));
  const double row =
      static_cast<double>(sizes_.tokens() * size_of(dtype_of(TensorType::kFp32, training_)));
  const double maximum = logits + row;
  const double sums = logits + row + labels + 2 * row;
  const double finish = logits + 3 * row + labels + logits;
  cost_.forward_bytes = maximum + sums + finish;
}

/// Everything else: forward reads inputs and parameters and writes outputs; backward reads the
/// outputs' gradients, what was saved and the parameters that scale, and writes gradients.
void Costing::add_plain() {
  const bool norm = module_.kind == ModuleKind::kNorm || module_.kind == ModuleKind::kHeadNorm;
  cost_.forward_bytes = parameter_elements() * parameter_size();
  for (const std::int8_t index : module_.inputs) {
    cost_.forward_bytes += bytes(tensor(index));
  }
  for (const std::int8_t index : module_.outputs) {
    cost_.forward_bytes += bytes(tensor(index));
  }
  if (module_.kind == ModuleKind::kResidual) {
    return;  // the gradient of the sum is that of both inputs: no operation
  }
  for (const std::int8_t index : module_.outputs) {
    const bool leaves = tensor(index).gradient_sources > 0 || index == form_.output;
    cost_.backward_bytes += leaves ? gradient_bytes(index) : 0;
  }
  for (const std::int8_t index : module_.saved) {
    cost_.backward_bytes += bytes(tensor(index));
  }
  for (const std::int8_t index : module_.inputs) {
    cost_.backward_bytes += gradient_bytes(index);
  }
  for (const std::int16_t index : module_.parameters) {
    const bool scales =
        norm && !form_.parameters[static_cast<std::size_t>(index)].suffix.ends_with(".bias");
    cost_.backward_bytes += parameter_elements(index) * gradient_size() +
                            (scales ? parameter_elements(index) * parameter_size() : 0);
  }
}

/// A tensor with several readers gets its gradient in parts. Backward meets the last reader first;
/// each reader before it adds its part to the sum: two reads and a write.
void Costing::add_gradient_sums() {
  const auto last_reader = [&](std::int8_t index) {
    std::int32_t last = -1;
    for (std::size_t m = 0; m < form_.modules.size(); ++m) {
      const std::vector<std::int8_t>& inputs = form_.modules[m].inputs;
      if (std::find(inputs.begin(), inputs.end(), index) != inputs.end()) {
        last = static_cast<std::int32_t>(m);
      }
    }
    return last;
  };
  for (const std::int8_t index : module_.inputs) {
    if (gradient_bytes(index) > 0 && last_reader(index) != index_) {
      cost_.backward_bytes += 3 * gradient_bytes(index);
    }
  }
}

void Costing::add_saved() {
  for (const TensorDef& definition : form_.tensors) {
    if (definition.first_saver == index_) {
      const auto size = static_cast<std::int64_t>(bytes(definition));
      cost_.saved_bytes += size;
      cost_.saved_statistic_bytes += definition.statistic ? size : 0;
    }
  }
}

}  // namespace

ModuleCost& ModuleCost::operator+=(const ModuleCost& other) {
  forward_flops += other.forward_flops;
  backward_input_flops += other.backward_input_flops;
  backward_weight_flops += other.backward_weight_flops;
  forward_bytes += other.forward_bytes;
  backward_bytes += other.backward_bytes;
  saved_bytes += other.saved_bytes;
  saved_statistic_bytes += other.saved_statistic_bytes;
  return *this;
}

ModuleCost module_cost(const ModelGraph& graph,
                       std::uint32_t module,
                       const TrainingSpec& training,
                       const LocalSizes& sizes) {
  return Costing(graph, module, training, sizes).run();
}

ModuleCost segment_cost(const ModelGraph& graph,
                        std::int32_t segment,
                        const TrainingSpec& training,
                        const LocalSizes& sizes) {
  const Segment& place = graph.segments[static_cast<std::size_t>(segment)];
  ModuleCost cost;
  for (std::size_t m = 0; m < graph.form(place).modules.size(); ++m) {
    cost +=
        module_cost(graph,
                    static_cast<std::uint32_t>(place.first_module) + static_cast<std::uint32_t>(m),
                    training,
                    sizes);
  }
  return cost;
}

}  // namespace lockstep
