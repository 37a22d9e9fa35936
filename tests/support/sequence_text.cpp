#include "tests/support/sequence_text.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "core/model_graph.h"
#include "core/plan_text.h"
#include "tests/support/golden.h"

namespace lockstep::test {
namespace {

bool is_backward(Phase phase) {
  return phase == Phase::kBackward || phase == Phase::kBackwardInput ||
         phase == Phase::kBackwardWeight;
}

bool is_model_phase(Phase phase) {
  return phase == Phase::kForward || phase == Phase::kRecompute || phase == Phase::kEvaluate ||
         is_backward(phase);
}

char letter_of(Phase phase) {
  switch (phase) {
    case Phase::kRecompute:
      return 'R';
    case Phase::kBackward:
      return 'B';
    case Phase::kBackwardInput:
      return 'I';
    case Phase::kBackwardWeight:
      return 'W';
    default:
      return 'F';
  }
}

/// Moving and converting, which the notation leaves out; sums of two paths in backward too.
bool is_silent(const Operation& op) {
  return op.work == Work::kPack || op.work == Work::kUnpack || op.work == Work::kCast ||
         op.work == Work::kZero || op.work == Work::kScale ||
         (op.work == Work::kAdd && is_backward(op.phase));
}

class Writer {
 public:
  Writer(const Plan& plan, const Section& section, int class_index, const SequenceOptions& options)
      : plan_(plan),
        graph_(*plan.graph),
        program_(section.programs[static_cast<std::size_t>(class_index)]),
        buffers_(plan.buffers[static_cast<std::size_t>(class_index)]),
        options_(options) {}

  Sequence write() {
    for (index_ = 0; index_ < program_.operations.size(); ++index_) {
      const Operation& op = program_.operations[index_];
      waits(op);
      switch (op.kind) {
        case OperationKind::kCollective:
          collective(op);
          break;
        case OperationKind::kSend:
        case OperationKind::kRecv:
          message(op);
          break;
        case OperationKind::kCompute:
          compute(op);
          break;
        case OperationKind::kFree:
          freed(op);
          break;
        default:
          break;
      }
    }
    return std::move(sequence_);
  }

 private:
  void add(std::string word) {
    const bool again = !sequence_.steps.empty() && sequence_.steps.back() == word;
    if (!again) {
      sequence_.steps.push_back(std::move(word));
    }
  }

  // ---- names -----------------------------------------------------------------------------------

  std::string segment_name(const Segment& segment) const {
    if (segment.layer >= 0) {
      return fmt::format("B{}", segment.layer);
    }
    return segment.first_module == 0 ? "embed" : "head";
  }

  /// Of a set of parameters: their block, or R.
  std::string unit_name(const Layout& layout) const {
    std::set<std::string> names;
    for (const LayoutEntry& entry : layout.entries) {
      const ParameterRef& ref = graph_.parameters[static_cast<std::size_t>(entry.parameter)];
      const Segment& segment = graph_.segments[static_cast<std::size_t>(ref.segment)];
      names.insert(segment.layer >= 0 ? segment_name(segment) : "R");
    }
    return names.size() == 1 ? *names.begin() : "";
  }

  std::string bucket_name(std::uint32_t buffer) {
    const auto next = static_cast<int>(buckets_.size());
    return std::to_string(buckets_.emplace(buffer, next).first->second);
  }

  std::string number_name(const Operation& op, const Buffer& buffer) const {
    if (buffer.category == Category::kOptimizer) {
      return "overflow";
    }
    return op.phase == Phase::kClip ? "norm" : buffer.dtype == DType::kInt64 ? "tokens" : "loss";
  }

  std::string payload_name(const Operation& op) {
    const std::span<const View> views =
        op.outputs > 0 ? program_.outputs_of(op) : program_.inputs_of(op);
    const View& view =
        views.front().buffer == kNoBuffer ? program_.inputs_of(op).front() : views.front();
    const Buffer& buffer = buffers_[view.buffer];
    const bool sharded = plan_.graph->parameters.size() > 0 && buffer.layout != kNoLayout;
    if (op.elements == 1 && (op.has(kControl) || op.phase == Phase::kClip)) {
      return number_name(op, buffer);
    }
    if (buffer.parameter >= 0) {
      return graph_.parameter_name(buffer.parameter);
    }
    if (sharded) {
      const std::string unit = unit_name(plan_.layouts[buffer.layout]);
      const bool is_bucket = by_bucket(op);
      return unit.empty() || is_bucket ? bucket_name(layout_key(buffer)) : unit;
    }
    if (buffer.category == Category::kCommunication && buffer.lifetime == Lifetime::kPersistent) {
      return bucket_name(view.buffer);
    }
    if (op.module != kNoModule && is_model_phase(op.phase)) {
      return short_module_name(op.module);
    }
    return std::string(name_of(buffer.dtype));
  }

  /// Partitions are named by bucket everywhere or by unit everywhere.
  bool by_bucket(const Operation&) const {
    return std::any_of(plan_.layouts.begin(), plan_.layouts.end(), [&](const Layout& layout) {
      return layout.coordinates > 1 && unit_name(layout).empty();
    });
  }
  std::uint32_t layout_key(const Buffer& buffer) const { return 0x80000000U + buffer.layout; }

  std::string short_module_name(std::uint32_t module) const {
    const Segment& segment = graph_.segment_of(module);
    std::string name = graph_.module_name(module);
    if (segment.layer >= 0) {
      const std::size_t dot = name.find('.', name.find('.') + 1);
      name = name.substr(dot + 1);
    }
    return name;
  }

  // ---- operations ------------------------------------------------------------------------------

  std::string label(const Operation& op) {
    static const std::map<Collective, const char*> kLabels = {
        {Collective::kAllReduce, "AR"},
        {Collective::kAllGather, "AG"},
        {Collective::kReduceScatter, "RS"},
        {Collective::kBroadcast, "BC"},
        {Collective::kReduce, "RD"},
        {Collective::kGather, "GA"},
        {Collective::kScatter, "SC"},
        {Collective::kAllToAll, "A2A"},
        {Collective::kBarrier, "BAR"},
    };
    std::string text = kLabels.at(op.collective);
    if (op.root >= 0) {
      text += std::to_string(op.root);
    }
    return fmt::format("{}({})", text, payload_name(op));
  }

  void collective(const Operation& op) {
    const std::string name = label(op);
    std::string word = fmt::format("{}[{}]", name, op.elements);
    const std::string group = group_text(plan_.mesh, plan_.communicators[op.communicator]);
    if (group != "dp") {
      word += "@" + group;
    }
    if (op.reduction == Reduction::kAverage || op.reduction == Reduction::kMax) {
      word += op.reduction == Reduction::kMax ? ":max" : ":avg";
    }
    if (op.has(kControl)) {
      sequence_.control.push_back(word);
      return;
    }
    outstanding_.push_back({static_cast<std::uint32_t>(index_), op.stream, name});
    sequence_.steps.push_back(word);
  }

  void message(const Operation& op) {
    const std::string text =
        fmt::format("_{}{}", op.phase == Phase::kForward ? 'F' : 'B', op.microbatch);
    if (op.kind == OperationKind::kSend) {
      sequence_.steps.push_back("SEND" + text);
    } else {
      received_[program_.outputs_of(op).front().buffer] = "RECV" + text;
    }
  }

  /// A message is asked for long before it is needed; it is shown where it is read first.
  void received(const Operation& op) {
    for (const View& view : program_.inputs_of(op)) {
      const auto found = received_.find(view.buffer);
      if (found != received_.end()) {
        sequence_.steps.push_back(found->second);
        received_.erase(found);
      }
    }
  }

  void compute(const Operation& op) {
    received(op);
    if (op.phase == Phase::kReduce && options_.scaling) {
      return scaling(op);
    }
    if (op.phase == Phase::kClip || op.phase == Phase::kOptimizer) {
      return after_gradients(op);
    }
    if (op.module == kNoModule || !is_model_phase(op.phase) || is_silent(op)) {
      return;
    }
    const char letter = letter_of(op.phase);
    switch (options_.compute) {
      case SequenceOptions::Compute::kSegments:
        return add(fmt::format("{}({})", letter, segment_name(graph_.segment_of(op.module))));
      case SequenceOptions::Compute::kModules:
        return add(fmt::format("{}({}{})", letter, short_module_name(op.module), part_of(op)));
      case SequenceOptions::Compute::kMicrobatches:
        return add(fmt::format("{}{}", letter, op.microbatch));
    }
  }

  static const char* part_of(const Operation& op) {
    switch (op.work) {
      case Work::kMatmulGradInput:
        return ".dgrad";
      case Work::kMatmulGradWeight:
        return ".wgrad";
      case Work::kBias:
      case Work::kBiasGrad:
        return ".bias";
      default:
        return "";
    }
  }

  void scaling(const Operation& op) {
    const bool scales = op.scalar != kNoScalar && plan_.scalars[op.scalar].value() != 1;
    if (scales) {
      const Scalar& scalar = plan_.scalars[op.scalar];
      add(fmt::format("scale({}/{})", scalar.numerator, scalar.denominator));
    } else if (op.stream == Stream::kData || op.stream == Stream::kDataReplica) {
      add(op.work == Work::kAdd ? "add" : "copy");
    }
  }

  void after_gradients(const Operation& op) {
    switch (op.work) {
      case Work::kSumSquares:
        return add("squares");
      case Work::kClipCoefficient:
        return add("coefficient");
      case Work::kScale:
        return add("clip");
      case Work::kUnscaleAndCheck:
        return add("unscale");
      case Work::kScalerUpdate:
        return add("scaler");
      case Work::kSgd:
      case Work::kMomentum:
      case Work::kAdamW:
      case Work::kAdamW8bit:
        return add("step");
      default:
        return;
    }
  }

  void freed(const Operation& op) {
    const Buffer& buffer = buffers_[op.buffer];
    if (!options_.memory || buffer.parameter < 0) {
      return;
    }
    if (buffer.category == Category::kGatheredParameter) {
      const ParameterRef& ref = graph_.parameters[static_cast<std::size_t>(buffer.parameter)];
      const Segment& segment = graph_.segments[static_cast<std::size_t>(ref.segment)];
      add(fmt::format("reshard({})", segment.layer >= 0 ? segment_name(segment) : "R"));
    } else if (buffer.category == Category::kGradient && op.phase == Phase::kReduce) {
      add("drop");
    }
  }

  // ---- waits -----------------------------------------------------------------------------------

  struct Outstanding {
    std::uint32_t index = 0;
    Stream stream = Stream::kCompute;
    std::string name;
  };

  void waits(const Operation& op) {
    // What a copy-in waits for, the gather that it begins waits for.
    const bool copies_in = op.stream == Stream::kCopy;
    if (op.stream != Stream::kCompute && !copies_in) {
      return;
    }
    if (options_.waits == SequenceOptions::Waits::kData && !copies_in) {
      wait_if([&](const Outstanding& each) { return reads_result(op, each.index); });
    } else if (options_.waits == SequenceOptions::Waits::kAll) {
      // A dependency on an operation of another stream is one on all that this stream did before.
      for (const std::uint32_t on : program_.dependencies_of(op)) {
        wait_if([&](const Outstanding& each) {
          return each.index <= on && on < program_.operations.size() &&
                 each.stream == program_.operations[on].stream;
        });
      }
    }
  }

  template <typename Done>
  void wait_if(Done&& done) {
    for (const Outstanding& each : outstanding_) {
      if (done(each)) {
        sequence_.steps.push_back("|" + each.name);
      }
    }
    std::erase_if(outstanding_, done);
  }

  bool reads_result(const Operation& op, std::uint32_t before) const {
    for (const View& read : program_.inputs_of(op)) {
      for (const View& written : program_.outputs_of(program_.operations[before])) {
        if (root_of(read.buffer) == root_of(written.buffer)) {
          return true;
        }
      }
    }
    return false;
  }

  std::uint32_t root_of(std::uint32_t buffer) const {
    while (buffer != kNoBuffer && buffers_[buffer].alias_of != kNoBuffer) {
      buffer = buffers_[buffer].alias_of;
    }
    return buffer;
  }

  const Plan& plan_;
  const ModelGraph& graph_;
  const Program& program_;
  const std::vector<Buffer>& buffers_;
  const SequenceOptions& options_;
  std::size_t index_ = 0;
  Sequence sequence_;
  std::vector<Outstanding> outstanding_;
  std::map<std::uint32_t, int> buckets_;
  std::map<std::uint32_t, std::string> received_;  ///< by buffer: messages not read yet
};

}  // namespace

Sequence sequence_of(const Plan& plan,
                     const Section& section,
                     int class_index,
                     const SequenceOptions& options) {
  return Writer(plan, section, class_index, options).write();
}

std::vector<SequenceCase> read_sequences(const std::string& golden) {
  std::vector<SequenceCase> cases;
  bool control = false;
  for (const std::string& line : read_golden(golden).lines) {
    if (line.rfind("== ", 0) == 0) {
      cases.push_back({line.substr(3), {}});
      control = false;
      continue;
    }
    if (line.rfind('#', 0) == 0) {
      continue;
    }
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == "control:") {
        control = true;
      } else if (word != ";") {
        Sequence& sequence = cases.back().sequence;
        (control ? sequence.control : sequence.steps).push_back(word);
      }
    }
  }
  return cases;
}

}  // namespace lockstep::test
