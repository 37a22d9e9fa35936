#include "core/memory_ledger.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "core/model_graph.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

// ---- the walk ----------------------------------------------------------------------------------

/// A state of memory: what is held when `operations` operations of a section have been passed.
struct PeakPoint {
  int section = -1;
  std::size_t operations = 0;
  std::int64_t total = -1;
};

/// Sections that a training run passes, in that order. The last step is the one that repeats.
std::vector<int> training_sections(const Plan& plan) {
  std::vector<int> order;
  for (const SectionKind kind : {SectionKind::kInit, SectionKind::kStep}) {
    for (std::size_t i = 0; i < plan.sections.size(); ++i) {
      if (plan.sections[i].kind == kind) {
        order.push_back(static_cast<int>(i));
      }
    }
  }
  return order;
}

class Walk {
 public:
  Walk(const Plan& plan, int class_index)
      : plan_(plan),
        class_(static_cast<std::size_t>(class_index)),
        order_(training_sections(plan)),
        allocated_by_(plan.buffers[class_].size(), nullptr) {}

  /// The first moment of the highest total; of sections that reach the same, the last one, so that
  /// the step that repeats stands before its first form.
  PeakPoint find_peak() {
    PeakPoint highest;
    std::int64_t held = 0;
    for (const int section : order_) {
      PeakPoint here{section, 0, held};
      const std::vector<Operation>& operations = program(section).operations;
      for (std::size_t i = 0; i < operations.size(); ++i) {
        held += change(operations[i]);
        if (held > here.total) {
          here = {section, i + 1, held};
        }
      }
      if (here.total >= highest.total) {
        highest = here;
      }
    }
    return highest;
  }

  /// Passes everything up to `point`.
  void run_to(const PeakPoint& point) {
    for (const int section : order_) {
      const std::vector<Operation>& operations = program(section).operations;
      const std::size_t end = section == point.section ? point.operations : operations.size();
      for (std::size_t i = 0; i < end; ++i) {
        pass(operations[i]);
      }
      if (section == point.section) {
        return;
      }
    }
  }

  /// The operation that is issued at the peak, or null.
  const Operation* operation_at(const PeakPoint& point) const {
    const std::vector<Operation>& operations = program(point.section).operations;
    for (std::size_t i = point.operations; i < operations.size(); ++i) {
      if (operations[i].kind != OperationKind::kAlloc &&
          operations[i].kind != OperationKind::kFree) {
        return &operations[i];
      }
    }
    return nullptr;
  }

  MemoryPeak name(const PeakPoint& point) const {
    MemoryPeak peak;
    for (const std::uint32_t id : live()) {
      peak.bytes[static_cast<std::size_t>(buffer(id).category)] += buffer(id).bytes();
    }
    if (const Operation* op = operation_at(point)) {
      peak.phase = op->phase;
      peak.work = op->work;
      peak.module = op->module;
      peak.microbatch = op->microbatch;
    }
    return peak;
  }

  std::vector<std::uint32_t> live() const {
    std::vector<std::uint32_t> ids;
    for (std::size_t id = 0; id < allocated_by_.size(); ++id) {
      const auto number = static_cast<std::uint32_t>(id);
      if (allocated_by_[id] != nullptr && buffer(number).storage == Storage::kDevice &&
          buffer(number).bytes() > 0) {
        ids.push_back(number);
      }
    }
    return ids;
  }

  const Operation& allocated_by(std::uint32_t id) const { return *allocated_by_[id]; }
  const Buffer& buffer(std::uint32_t id) const { return plan_.buffers[class_][id]; }
  const Program& program(int section) const {
    return plan_.sections[static_cast<std::size_t>(section)].programs[class_];
  }

 private:
  std::int64_t change(const Operation& op) const {
    if (op.kind != OperationKind::kAlloc && op.kind != OperationKind::kFree) {
      return 0;
    }
    const Buffer& it = buffer(op.buffer);
    const std::int64_t bytes = it.storage == Storage::kDevice ? it.bytes() : 0;
    return op.kind == OperationKind::kAlloc ? bytes : -bytes;
  }
  void pass(const Operation& op) {
    if (op.kind == OperationKind::kAlloc) {
      allocated_by_[op.buffer] = &op;
    } else if (op.kind == OperationKind::kFree) {
      allocated_by_[op.buffer] = nullptr;
    }
  }

  const Plan& plan_;
  std::size_t class_;
  std::vector<int> order_;
  std::vector<const Operation*> allocated_by_;
};

// ---- names -------------------------------------------------------------------------------------

/// Buffers of one origin.
struct Group {
  std::uint32_t first = 0;  ///< buffer
  std::int64_t buffers = 0;
  std::int64_t elements = 0;                     ///< of all
  std::map<std::int64_t, std::int64_t> by_size;  ///< elements of a buffer -> buffers
  std::set<std::int32_t> layers;
  std::set<std::int32_t> microbatches;
  std::set<std::int32_t> parameters;
};

bool is_message(const Operation& op) {
  return op.kind == OperationKind::kCollective || op.kind == OperationKind::kSend ||
         op.kind == OperationKind::kRecv;
}

/// "all_gather dp", "send pp".
std::string message_text(const Plan& plan, const Operation& op) {
  return fmt::format(
      "{} {}",
      op.kind == OperationKind::kCollective ? name_of(op.collective) : name_of(op.kind),
      group_text(plan.mesh, plan.communicators[op.communicator]));
}

std::string segment_label(const ModelGraph& graph, std::int32_t index) {
  const Segment& segment = graph.segments[static_cast<std::size_t>(index)];
  if (segment.layer >= 0) {
    return graph.form(segment).name + "*";
  }
  return index == 0 ? "embedding" : "head";
}

/// "layers.*.mlp.up" for module 3 of any layer.
std::string module_label(const ModelGraph& graph, std::uint32_t module) {
  const std::int32_t index = graph.segment_of_module[module];
  const char* name = graph.module(module).name;
  return graph.segments[static_cast<std::size_t>(index)].layer >= 0
             ? segment_label(graph, index) + "." + name
             : std::string(name);
}

std::string parameter_label(const ModelGraph& graph, std::int32_t parameter) {
  const std::int32_t index = graph.parameters[static_cast<std::size_t>(parameter)].segment;
  const std::string& suffix = graph.parameter(parameter).suffix;
  return graph.segments[static_cast<std::size_t>(index)].layer >= 0
             ? segment_label(graph, index) + "." + suffix
             : suffix;
}

/// "layers.*" or "embedding+head": the segments whose parameters a layout covers.
std::string layout_label(const ModelGraph& graph, const Layout& layout) {
  std::vector<std::string> labels;
  for (const LayoutEntry& entry : layout.entries) {
    const auto parameter = static_cast<std::size_t>(entry.parameter);
    std::string label = segment_label(graph, graph.parameters[parameter].segment);
    if (std::find(labels.begin(), labels.end(), label) == labels.end()) {
      labels.push_back(std::move(label));
    }
  }
  return fmt::format("{}", fmt::join(labels, "+"));
}

std::string_view state_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "SGD keeps no state";
    case OptimizerKind::kMomentum:
      return "momentum: one number per parameter";
    case OptimizerKind::kAdamW:
      return "AdamW: two moments per parameter (arXiv:1711.05101)";
    case OptimizerKind::kAdamW8bit:
      return "8-bit AdamW: two bytes per parameter, two maxima per 256 (arXiv:2110.02861)";
  }
  return "";
}

class Namer {
 public:
  Namer(const Plan& plan, const PlannerContext& context, const Walk& walk, int section)
      : plan_(plan), context_(context), graph_(*context.graph), walk_(walk) {
    for (const Operation& op : walk.program(section).operations) {
      note_message(walk.program(section), op);
    }
  }

  std::vector<LedgerRow> rows(const std::vector<std::uint32_t>& live) {
    for (const std::uint32_t id : live) {
      const Buffer& buffer = walk_.buffer(id);
      has_masters_ =
          has_masters_ || (buffer.category == Category::kParameter && size_of(buffer.dtype) == 2);
    }
    // By category and name: the order of equals is that of their names.
    std::map<std::pair<Category, std::string>, Group> groups;
    for (const std::uint32_t id : live) {
      add(groups[{walk_.buffer(id).category, name_of_buffer(id)}], id);
    }
    std::vector<LedgerRow> rows;
    for (const auto& [key, group] : groups) {
      LedgerRow& row = rows.emplace_back();
      row.category = key.first;
      row.buffers = group.buffers;
      row.term.name = key.second;
      row.term.bytes = group.elements * size_of(walk_.buffer(group.first).dtype);
      row.term.formula = formula(group);
      row.term.source = source(key.first);
    }
    std::stable_sort(rows.begin(), rows.end(), [](const LedgerRow& a, const LedgerRow& b) {
      return a.category != b.category ? a.category < b.category : a.term.bytes > b.term.bytes;
    });
    return rows;
  }

 private:
  void note_message(const Program& program, const Operation& op) {
    if (!is_message(op)) {
      return;
    }
    const std::string text = message_text(plan_, op);
    for (const View& view : program.inputs_of(op)) {
      message_of_.emplace(view.buffer, text);
    }
    for (const View& view : program.outputs_of(op)) {
      message_of_.emplace(view.buffer, text);
    }
  }

  void add(Group& group, std::uint32_t id) const {
    const Buffer& buffer = walk_.buffer(id);
    const Operation& op = walk_.allocated_by(id);
    if (group.buffers++ == 0) {
      group.first = id;
    }
    group.elements += buffer.elements;
    ++group.by_size[buffer.elements];
    group.microbatches.insert(op.microbatch);
    if (op.module != kNoModule) {
      group.layers.insert(graph_.segment_of(op.module).layer);
    }
    if (buffer.parameter >= 0) {
      group.parameters.insert(buffer.parameter);
    }
  }

  std::string name_of_buffer(std::uint32_t id) const {
    const Buffer& buffer = walk_.buffer(id);
    const Operation& op = walk_.allocated_by(id);
    std::string name;
    if (buffer.parameter >= 0) {
      name = parameter_label(graph_, buffer.parameter);
    } else if (buffer.layout != kNoLayout) {
      name = layout_label(graph_, plan_.layouts[buffer.layout]);
      if (buffer.category == Category::kCommunication) {
        name += message_of(id);
      }
    } else if (op.module != kNoModule) {
      name = module_label(graph_, op.module);
      if (const TensorDef* tensor = tensor_of(id)) {
        const bool gradient = op.phase == Phase::kBackward || op.phase == Phase::kBackwardInput ||
                              op.phase == Phase::kBackwardWeight;
        name += fmt::format(": {}{}", gradient ? "gradient of " : "", tensor->name);
      } else {
        name += message_of(id);
      }
      name += op.phase == Phase::kRecompute ? ", recomputed" : "";
    } else {
      name = buffer.category == Category::kInput
                 ? "batch"
                 : fmt::format("{}{}", name_of(op.phase), message_of(id));
    }
    return fmt::format("{} ({})", name, name_of(buffer.dtype));
  }

  std::string message_of(std::uint32_t id) const {
    const auto found = message_of_.find(id);
    return found == message_of_.end() ? "" : ": " + found->second;
  }

  /// The tensor of the allocating module that is as large as the buffer, or null. Outputs are made
  /// in forward, gradients of inputs in backward.
  const TensorDef* tensor_of(std::uint32_t id) const {
    const Buffer& buffer = walk_.buffer(id);
    const Operation& op = walk_.allocated_by(id);
    const ModuleDef& module = graph_.module(op.module);
    const SegmentTemplate& form = graph_.form(graph_.segment_of(op.module));
    const bool forward = op.phase == Phase::kForward || op.phase == Phase::kRecompute;
    const TensorDef* other_type = nullptr;
    for (const bool outputs : {forward, !forward}) {
      for (const std::int8_t index : outputs ? module.outputs : module.inputs) {
        const TensorDef& tensor = form.tensors[static_cast<std::size_t>(index)];
        if (elements_of(tensor, graph_.model, context_.sizes) != buffer.elements) {
          continue;
        }
        if (dtype_of(tensor.type, context_.training()) == buffer.dtype) {
          return &tensor;
        }
        other_type = other_type == nullptr ? &tensor : other_type;
      }
    }
    return other_type;
  }

  // ---- formulas --------------------------------------------------------------------------------

  std::string formula(const Group& group) const {
    const Buffer& buffer = walk_.buffer(group.first);
    const std::int64_t size = size_of(buffer.dtype);
    if (group.by_size.size() > 1) {
      return fmt::format("({}) x {}", sizes_text(group), size);
    }
    return fmt::format("{}{} x {}", count_text(group), elements_text(group.first), size);
  }

  /// "2 x 1024 + 1 x 96", or the sum where there are many sizes.
  static std::string sizes_text(const Group& group) {
    if (group.by_size.size() > 4) {
      return fmt::format("{} elements", group.elements);
    }
    std::string text;
    for (const auto& [elements, buffers] : group.by_size) {
      text += fmt::format("{}{} x {}", text.empty() ? "" : " + ", buffers, elements);
    }
    return text;
  }

  /// "2 states x 32 x " or "32 layers x 4 micro-batches x "; nothing for one buffer.
  std::string count_text(const Group& group) const {
    const auto parameters = static_cast<std::int64_t>(group.parameters.size());
    if (parameters > 0 && group.buffers > parameters && group.buffers % parameters == 0) {
      return fmt::format("{} each x {} x ", group.buffers / parameters, parameters);
    }
    if (group.buffers == 1) {
      return "";
    }
    const auto layers = static_cast<std::int64_t>(group.layers.size());
    const auto microbatches = static_cast<std::int64_t>(group.microbatches.size());
    if (parameters == 0 && layers * microbatches == group.buffers) {
      std::string text = layers > 1 ? fmt::format("{} layers x ", layers) : "";
      return text + (microbatches > 1 ? fmt::format("{} micro-batches x ", microbatches) : "");
    }
    return fmt::format("{} x ", group.buffers);
  }

  std::string elements_text(std::uint32_t id) const {
    const Buffer& buffer = walk_.buffer(id);
    if (buffer.parameter >= 0) {
      return parameter_elements(buffer);
    }
    if (buffer.layout != kNoLayout) {
      return layout_elements(buffer);
    }
    const bool has_module = walk_.allocated_by(id).module != kNoModule;
    const TensorDef* tensor = has_module ? tensor_of(id) : nullptr;
    return tensor == nullptr ? fmt::format("{} elements", buffer.elements)
                             : tensor_elements(*tensor);
  }

  std::string parameter_elements(const Buffer& buffer) const {
    const ParameterDef& definition = graph_.parameter(buffer.parameter);
    if (context_.local_elements(definition) != buffer.elements) {
      return fmt::format("{} elements", buffer.elements);
    }
    const auto cut = [&](std::int64_t extent, ParameterCut which) {
      return context_.tensor() > 1 && definition.cut == which
                 ? fmt::format("ceil({} / t {})", extent, context_.tensor())
                 : fmt::format("{}", extent);
    };
    const std::string rows = cut(definition.rows, ParameterCut::kRows);
    return definition.vector ? rows
                             : rows + " x " + cut(definition.columns, ParameterCut::kColumns);
  }

  std::string layout_elements(const Buffer& buffer) const {
    const Layout& layout = plan_.layouts[buffer.layout];
    std::string whole =
        layout.padding_elements() == 0
            ? fmt::format("{}", layout.elements())
            : fmt::format("({} + {} padding)", layout.elements(), layout.padding_elements());
    if (buffer.elements == layout.padded_elements()) {
      return whole;
    }
    if (buffer.elements == layout.elements_per_coordinate) {
      return fmt::format("{} / {} ranks", whole, layout.coordinates);
    }
    return fmt::format("{} elements", buffer.elements);
  }

  std::string tensor_elements(const TensorDef& tensor) const {
    const LocalSizes& sizes = context_.sizes;
    const std::int64_t t = sizes.tensor;
    const auto over_t = [&](std::int64_t extent, const char* word) {
      return t > 1 ? fmt::format("ceil({}{} / t {})", word, extent, t)
                   : fmt::format("{}{}", word, extent);
    };
    const std::string rows =
        tensor.per_token > 1 ? fmt::format("{} rows x ", tensor.per_token) : "";
    switch (tensor.region) {
      case Region::kTokens:
        return sizes.sequence_parallel
                   ? fmt::format("(b {} x s {} / t {}) x {}{}",
                                 sizes.batch,
                                 sizes.seq,
                                 t,
                                 rows,
                                 tensor.width)
                   : fmt::format("b {} x s {} x {}{}", sizes.batch, sizes.seq, rows, tensor.width);
      case Region::kAllTokens:
        return fmt::format("b {} x s {} x {}{}", sizes.batch, sizes.seq, rows, tensor.width);
      case Region::kWidth:
        return fmt::format(
            "b {} x s {} x {}{}", sizes.batch, sizes.seq, rows, over_t(tensor.width, ""));
      case Region::kScores:
        return fmt::format("b {} x {} x s {} x s {}",
                           sizes.batch,
                           over_t(graph_.model.heads, "heads "),
                           sizes.seq,
                           sizes.seq);
      case Region::kHeadRows:
        return fmt::format(
            "b {} x {} x s {}", sizes.batch, over_t(graph_.model.heads, "heads "), sizes.seq);
      case Region::kVector:
        return fmt::format("{}", tensor.width);
    }
    return "";
  }

  std::string source(Category category) const {
    switch (category) {
      case Category::kParameter:
        return "model graph; type from training.precision and the strategy";
      case Category::kGatheredParameter:
        return "whole parameters while they are needed";
      case Category::kGradient:
        return "one per parameter; type from training.gradient_dtype and reduce_dtype";
      case Category::kOptimizer:
        return fmt::format("{}{}",
                           state_of(context_.training().optimizer),
                           has_masters_ ? "; fp32 master copy (arXiv:1710.03740)" : "");
      case Category::kActivation:
        return "model graph: what backward reads (arXiv:2205.05198) and what is being computed";
      case Category::kLogits:
        return "model graph: logits, then their gradient";
      case Category::kCommunication:
        return "messages of the plan";
      case Category::kInput:
        return "tokens and labels";
      case Category::kTemporary:
        return "plan";
    }
    return "";
  }

  const Plan& plan_;
  const PlannerContext& context_;
  const ModelGraph& graph_;
  const Walk& walk_;
  bool has_masters_ = false;  ///< parameters have 16 bits, so the optimizer holds wider ones
  std::map<std::uint32_t, std::string> message_of_;  ///< first message of each buffer
};

}  // namespace

std::string_view name_of(Basis basis) {
  static constexpr std::string_view kNames[] = {"computed", "measured elsewhere", "assumed"};
  return kNames[static_cast<std::size_t>(basis)];
}

MemoryLedger memory_ledger(const Plan& plan,
                           const PlannerContext& context,
                           int class_index,
                           bool named) {
  Walk walk(plan, class_index);
  const PeakPoint point = walk.find_peak();
  LOCKSTEP_CHECK(point.section >= 0, "plan has neither init nor step");
  walk.run_to(point);
  MemoryLedger ledger;
  ledger.section = point.section;
  ledger.peak = walk.name(point);
  ledger.live = walk.live();
  if (const Operation* op = walk.operation_at(point)) {
    ledger.action = is_message(*op) ? message_text(plan, *op) : std::string(name_of(op->work));
  }
  LOCKSTEP_CHECK(total(ledger.peak.bytes) == point.total, "live buffers are not what is held");
  if (named) {
    ledger.rows = Namer(plan, context, walk, point.section).rows(ledger.live);
  }
  return ledger;
}

}  // namespace lockstep
