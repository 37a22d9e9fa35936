// Plans written by hand for the tests of the value check: linear, ReLU, linear and a loss, trained
// on one rank, data parallel with a gradient bucket, with sharded parameters, or with the two
// linear layers cut over tensor-parallel ranks. One writer, so that the differences are in one
// place; it shares no code with the planner.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/model_graph.h"
#include "core/planner/program_builder.h"

namespace lockstep::test {

inline constexpr std::int64_t kRows = 4;  ///< samples of a micro-batch
inline constexpr std::int64_t kIn = 5;
inline constexpr std::int64_t kHidden = 6;
inline constexpr std::int64_t kOut = 3;

/// up (column-cut), ReLU, down (row-cut), loss.
inline std::shared_ptr<const ModelGraph> hand_graph() {
  auto graph = std::make_shared<ModelGraph>();
  graph->model.family = ModelFamily::kMlp;
  SegmentTemplate form;
  const auto tensor = [&](Region region, std::int64_t width) {
    TensorDef definition;
    definition.region = region;
    definition.width = width;
    form.tensors.push_back(definition);
  };
  tensor(Region::kAllTokens, kIn);
  tensor(Region::kWidth, kHidden);
  tensor(Region::kWidth, kHidden);
  tensor(Region::kAllTokens, kOut);
  tensor(Region::kAllTokens, 1);
  const auto parameter = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    ParameterDef definition;
    definition.suffix = name;
    definition.rows = rows;
    definition.columns = columns;
    definition.vector = columns == 1;
    form.parameters.push_back(definition);
    return &form.parameters.back();
  };
  parameter("up.weight", kHidden, kIn)->cut = ParameterCut::kRows;
  parameter("up.bias", kHidden, 1)->cut = ParameterCut::kRows;
  parameter("down.weight", kOut, kHidden)->cut = ParameterCut::kColumns;
  parameter("down.bias", kOut, 1);
  const auto module = [&](ModuleKind kind,
                          const char* name,
                          std::vector<std::int8_t> inputs,
                          std::vector<std::int8_t> outputs) {
    ModuleDef definition;
    definition.kind = kind;
    definition.name = name;
    definition.inputs = std::move(inputs);
    definition.outputs = std::move(outputs);
    form.modules.push_back(definition);
    return &form.modules.back();
  };
  const auto linear = [](ModuleDef* definition, LinearCut cut, std::int16_t first_parameter) {
    definition->cut = cut;
    definition->parameters = {first_parameter, static_cast<std::int16_t>(first_parameter + 1)};
    definition->weights = 1;
  };
  linear(module(ModuleKind::kLinear, "up", {0}, {1}), LinearCut::kColumn, 0);
  module(ModuleKind::kActivation, "relu", {1}, {2});
  linear(module(ModuleKind::kLinear, "down", {2}, {3}), LinearCut::kRow, 2);
  module(ModuleKind::kLoss, "loss", {3, 4}, {});
  form.input = 0;
  form.output = 3;
  graph->templates.push_back(form);
  graph->segments = {{0, -1, 0, 0}};
  graph->parameters = {{0, 0}, {0, 1}, {0, 2}, {0, 3}};
  graph->segment_of_module = {0, 0, 0, 0};
  return graph;
}

struct HandOptions {
  int data = 1;
  int tensor = 1;
  int microbatches = 1;
  bool sharded = false;  ///< parameters, gradients and states over the data axis
};

/// Writes the one program that all ranks share.
class HandPlan {
 public:
  explicit HandPlan(const HandOptions& options)
      : options_(options),
        tables_(mesh(options), hand_graph()),
        b_(tables_, ProgramBuilder::Mode::kEmit) {}

  Plan make() {
    Plan& plan = tables_.plan();
    plan.microbatches = options_.microbatches;
    plan.variant_of_iteration = {0};
    plan.sections = {{SectionKind::kInit, 0, {}}, {SectionKind::kStep, 0, {}}};
    b_.begin_section();
    init();
    plan.sections[0].programs.push_back(b_.end_section());
    b_.begin_section();
    step();
    plan.sections[1].programs.push_back(b_.end_section());
    plan.buffers.push_back(b_.take_buffers());
    return std::move(plan);
  }

 private:
  static Mesh mesh(const HandOptions& options) {
    Mesh mesh;
    mesh.set(Axis::kData, options.data);
    mesh.set(Axis::kTensor, options.tensor);
    return mesh;
  }
  std::int64_t hidden() const { return kHidden / options_.tensor; }
  std::vector<std::int64_t> sizes() const {
    return {hidden() * kIn, hidden(), kOut * hidden(), kOut};
  }
  std::uint8_t data() { return tables_.communicator(mask_of(Axis::kData)); }

  BufferId persistent(Category category, std::int64_t elements, AllocOptions options = {}) {
    options.lifetime = Lifetime::kPersistent;
    return b_.alloc(category, DType::kFp32, elements, options);
  }
  BufferId temporary(Category category, std::int64_t elements, std::int32_t parameter = -1) {
    return b_.alloc(category, DType::kFp32, elements, {.parameter = parameter});
  }
  void fill(Work work, BufferId buffer, std::uint16_t layout = kNoLayout) {
    const View all = b_.whole(buffer);
    b_.compute(work, Shape{{all.elements}}, {}, Views(&all, 1), {.layout = layout});
  }
  void all_reduce(std::uint8_t group, Reduction reduction, BufferId buffer) {
    const View all = b_.whole(buffer);
    b_.collective(Collective::kAllReduce, group, reduction, all.elements, all, all, {});
  }

  void init() {
    b_.at(Phase::kInit);
    loss_ = persistent(Category::kTemporary, 1);
    if (options_.sharded) {
      std::vector<ParameterExtent> extents;
      for (int p = 0; p < 4; ++p) {
        const ParameterDef& definition = tables_.graph().parameter(p);
        extents.push_back({p, definition.rows, definition.columns});
      }
      shard_dim0(extents, options_.data, unit_);
      layout_ = tables_.layout(unit_);
      shard_ = persistent(Category::kParameter, unit_.elements_per_coordinate, {.layout = layout_});
      fill(Work::kInitialize, shard_, layout_);
      states_.push_back(
          persistent(Category::kOptimizer, unit_.elements_per_coordinate, {.layout = layout_}));
      fill(Work::kZero, states_[0]);
      return;
    }
    for (int p = 0; p < 4; ++p) {
      const std::int64_t elements = sizes()[static_cast<std::size_t>(p)];
      weights_.push_back(persistent(Category::kParameter, elements, {.parameter = p}));
      states_.push_back(persistent(Category::kOptimizer, elements, {.parameter = p}));
      fill(Work::kInitialize, weights_.back());
      fill(Work::kZero, states_.back());
      if (options_.data > 1) {
        const View all = b_.whole(weights_.back());
        b_.collective(
            Collective::kBroadcast, data(), Reduction::kNone, elements, all, all, {.root = 0});
      }
    }
  }

  void step() {
    if (options_.sharded) {
      gather();
    }
    for (int m = 0; m < options_.microbatches; ++m) {
      microbatch(m);
    }
    b_.at(Phase::kReduce);
    if (options_.sharded) {
      reduce_to_shard();
    } else if (options_.data > 1) {
      reduce_bucket();
    }
    optimize();
    b_.at(Phase::kOptimizer);
    if (options_.data > 1) {
      all_reduce(data(), Reduction::kAverage, loss_);
    }
    const View loss = b_.whole(loss_);
    b_.host(Work::kReadScalar, Shape{{1}}, Views(&loss, 1), Views());
  }

  /// The shard into this rank's slice, all slices from all ranks, the slices into whole parameters.
  void gather() {
    b_.at(Phase::kForward);
    const std::int64_t each = unit_.elements_per_coordinate;
    const BufferId flat = temporary(Category::kCommunication, unit_.padded_elements());
    const View slice = ProgramBuilder::slice(flat, Axis::kData, each);
    const View shard = b_.whole(shard_);
    b_.compute(Work::kPack, Shape{{each}}, {shard}, {slice});
    b_.collective(
        Collective::kAllGather, data(), Reduction::kNone, each, slice, b_.whole(flat), {});
    std::vector<View> parts;
    for (int p = 0; p < 4; ++p) {
      weights_.push_back(
          temporary(Category::kGatheredParameter, sizes()[static_cast<std::size_t>(p)], p));
      parts.push_back(b_.whole(weights_.back()));
    }
    const View all = b_.whole(flat);
    b_.compute(Work::kUnpack, Shape{{each}}, Views(&all, 1), parts, {.layout = layout_});
    b_.free(flat);
  }

  View weight(int p) const { return b_.whole(weights_[static_cast<std::size_t>(p)]); }
  View gradient(int p) const { return b_.whole(gradients_[static_cast<std::size_t>(p)]); }

  void microbatch(int m) {
    const auto number = [&](std::uint32_t module) { b_.at(Phase::kForward, module, m); };
    number(0);
    const BufferId x = temporary(Category::kInput, kRows * kIn);
    const BufferId labels = temporary(Category::kInput, kRows);
    const View batch[] = {b_.whole(x), b_.whole(labels)};
    b_.host(Work::kLoadBatch, Shape{{kRows, 1}}, Views(), Views(batch, 2));
    const Shape up_shape{{kRows, hidden(), kIn, 1}};
    const Shape down_shape{{kRows, kOut, hidden(), 1}};
    const BufferId up = temporary(Category::kActivation, kRows * hidden());
    const BufferId active = temporary(Category::kActivation, kRows * hidden());
    const BufferId logits = temporary(Category::kLogits, kRows * kOut);
    b_.compute(Work::kMatmul, up_shape, {b_.whole(x), weight(0), weight(1)}, {b_.whole(up)});
    number(1);
    b_.compute(Work::kRelu, Shape{{kRows, hidden()}}, {b_.whole(up)}, {b_.whole(active)});
    number(2);
    b_.compute(Work::kMatmul, down_shape, {b_.whole(active), weight(2)}, {b_.whole(logits)});
    if (options_.tensor > 1) {
      all_reduce(tables_.communicator(mask_of(Axis::kTensor)), Reduction::kSum, logits);
    }
    b_.compute(Work::kBias,
               Shape{{kRows, kOut}},
               {b_.whole(logits), weight(3)},
               {b_.whole(logits)},
               {.flags = kInPlace});
    number(3);
    loss(m, logits, labels);
    backward(m, {x, up, active, logits});
    for (const BufferId buffer : {x, labels, up, active, logits}) {
      b_.free(buffer);
    }
  }

  void loss(int m, BufferId logits, BufferId labels) {
    const Shape shape{{kRows, kOut, kOut}};
    const BufferId maximum = temporary(Category::kTemporary, kRows);
    const BufferId sums = temporary(Category::kTemporary, kRows);
    const BufferId target = temporary(Category::kTemporary, kRows);
    const View all = b_.whole(logits);
    b_.compute(Work::kLossLocalMax, shape, {all}, {b_.whole(maximum)});
    b_.compute(Work::kLossLocalSums,
               shape,
               {all, b_.whole(maximum), b_.whole(labels)},
               {b_.whole(sums), b_.whole(target)});
    b_.compute(Work::kLossFinish,
               shape,
               {all, b_.whole(maximum), b_.whole(sums), b_.whole(target), b_.whole(labels)},
               {b_.whole(loss_), all},
               {.flags = static_cast<std::uint16_t>(m > 0 ? kAccumulate : 0),
                .scalar = tables_.factor(1, options_.microbatches)});
    for (const BufferId buffer : {maximum, sums, target}) {
      b_.free(buffer);
    }
  }

  struct Saved {
    BufferId x, up, active, logits;
  };

  void backward(int m, const Saved& saved) {
    const auto flags = static_cast<std::uint16_t>(m > 0 ? kAccumulate : 0);
    for (int p = 0; p < 4 && m == 0; ++p) {
      gradients_.push_back(temporary(Category::kGradient, sizes()[static_cast<std::size_t>(p)], p));
    }
    const View dy = b_.whole(saved.logits);
    const BufferId dactive = temporary(Category::kActivation, kRows * hidden());
    const BufferId dup = temporary(Category::kActivation, kRows * hidden());
    const Shape down_shape{{kRows, kOut, hidden(), 1}};
    b_.at(Phase::kBackward, 2, m);
    b_.compute(Work::kMatmulGradInput, down_shape, {dy, weight(2)}, {b_.whole(dactive)});
    b_.compute(Work::kMatmulGradWeight,
               down_shape,
               {dy, b_.whole(saved.active)},
               {gradient(2), gradient(3)},
               {.flags = flags});
    b_.at(Phase::kBackward, 1, m);
    b_.compute(Work::kReluGrad,
               Shape{{kRows, hidden()}},
               {b_.whole(dactive), b_.whole(saved.up)},
               {b_.whole(dup)});
    b_.at(Phase::kBackward, 0, m);
    b_.compute(Work::kMatmulGradWeight,
               Shape{{kRows, hidden(), kIn, 1}},
               {b_.whole(dup), b_.whole(saved.x)},
               {gradient(0), gradient(1)},
               {.flags = flags});
    b_.free(dactive);
    b_.free(dup);
  }

  std::vector<View> gradients() const {
    std::vector<View> views;
    for (const BufferId buffer : gradients_) {
      views.push_back(b_.whole(buffer));
    }
    return views;
  }

  /// All gradients times 1/N into one message, its sum, and back.
  void reduce_bucket() {
    std::int64_t elements = 0;
    for (const std::int64_t size : sizes()) {
      elements += size;
    }
    const BufferId bucket = temporary(Category::kCommunication, elements);
    const View all = b_.whole(bucket);
    const std::vector<View> parts = gradients();
    b_.compute(Work::kPack,
               Shape{{elements}},
               parts,
               Views(&all, 1),
               {.scalar = tables_.factor(1, options_.data)});
    all_reduce(data(), Reduction::kSum, bucket);
    b_.compute(Work::kUnpack, Shape{{elements}}, Views(&all, 1), parts);
    b_.free(bucket);
  }

  void reduce_to_shard() {
    const std::int64_t each = unit_.elements_per_coordinate;
    const BufferId flat = temporary(Category::kCommunication, unit_.padded_elements());
    const BufferId shard = temporary(Category::kGradient, each);
    const View all = b_.whole(flat);
    const std::vector<View> parts = gradients();
    b_.compute(Work::kPack, Shape{{each}}, parts, Views(&all, 1), {.layout = layout_});
    b_.collective(
        Collective::kReduceScatter, data(), Reduction::kAverage, each, all, b_.whole(shard), {});
    b_.free(flat);
    for (const std::vector<BufferId>* buffers : {&gradients_, &weights_}) {
      for (const BufferId buffer : *buffers) {
        b_.free(buffer);
      }
    }
    gradients_ = {shard};
    weights_ = {shard_};
  }

  void optimize() {
    b_.at(Phase::kOptimizer);
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      const View parameter = b_.whole(weights_[i]);
      const View state = b_.whole(states_[i]);
      b_.compute(Work::kMomentum,
                 Shape{{parameter.elements}},
                 {parameter, b_.whole(gradients_[i]), state},
                 {parameter, state},
                 {.flags = kInPlace});
      b_.free(gradients_[i]);
    }
  }

  HandOptions options_;
  PlanBuilder tables_;
  ProgramBuilder b_;
  Layout unit_;
  std::uint16_t layout_ = kNoLayout;
  BufferId loss_ = kNoBuffer;
  BufferId shard_ = kNoBuffer;
  std::vector<BufferId> weights_;
  std::vector<BufferId> gradients_;
  std::vector<BufferId> states_;
};

inline Plan hand_plan(const HandOptions& options = {}) {
  return HandPlan(options).make();
}

}  // namespace lockstep::test
