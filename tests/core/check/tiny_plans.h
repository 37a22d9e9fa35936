// Tiny plans for the tests of the plan check, and ways to break them.
//
// two_stage_plan(): mesh pp 2 x dp 2, classes by stage. Each stage has one weight, two
// micro-batches run in GPipe order, gradients are summed over dp on the data stream, a flag
// (maximum over all ranks) guards the optimizer. Everything that the rules look at occurs in it
// once.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/check/plan_check.h"
#include "core/model_graph.h"
#include "core/planner/program_builder.h"

namespace lockstep::test {

inline constexpr std::int64_t kWidth = 8;
inline constexpr std::int64_t kTokens = 4;
inline constexpr int kMicroBatches = 2;

/// Two layers with one module each: "h.0.mlp" and "h.1.mlp".
inline std::shared_ptr<const ModelGraph> two_layer_graph() {
  auto graph = std::make_shared<ModelGraph>();
  SegmentTemplate form;
  form.name = "h.";
  form.modules.emplace_back();
  form.modules.back().name = "mlp";
  form.parameters.push_back({"mlp.weight", kWidth, kWidth});
  graph->templates.push_back(form);
  graph->segments = {{0, 0, 0, 0}, {0, 1, 1, 1}};
  graph->parameters = {{0, 0}, {1, 0}};
  graph->segment_of_module = {0, 1};
  return graph;
}

inline Mesh mesh_of(int pipeline, int data, int tensor = 1) {
  Mesh mesh;
  mesh.set(Axis::kPipeline, pipeline);
  mesh.set(Axis::kData, data);
  mesh.set(Axis::kTensor, tensor);
  return mesh;
}

/// Communicators of two_stage_plan(), in this order.
struct TwoStageGroups {
  std::uint8_t pipeline;
  std::uint8_t data;
  std::uint8_t world;  ///< control
};

/// Writes the programs of one stage.
class TwoStageProgram {
 public:
  TwoStageProgram(PlanBuilder& tables, const TwoStageGroups& groups, int stage)
      : b_(tables, ProgramBuilder::Mode::kEmit), groups_(groups), stage_(stage) {}

  Program init() {
    b_.begin_section();
    b_.at(Phase::kInit, module());
    weight_ = persistent(Category::kParameter, kWidth * kWidth);
    b_.compute(Work::kInitialize, {}, {}, {b_.whole(weight_)});
    b_.collective(Collective::kBroadcast,
                  groups_.data,
                  Reduction::kNone,
                  kWidth * kWidth,
                  b_.whole(weight_),
                  b_.whole(weight_),
                  on(Stream::kData, 0));
    scaler_ = persistent(Category::kOptimizer, 2);
    b_.compute(Work::kInitialize, {}, {}, {b_.whole(scaler_)});
    return b_.end_section();
  }

  Program step() {
    b_.begin_section();
    b_.at(Phase::kForward, module());
    gradient_ = b_.alloc(Category::kGradient, DType::kFp32, kWidth * kWidth);
    flag_ = b_.alloc(Category::kTemporary, DType::kFp32, 1);
    b_.compute(Work::kZero, {{kWidth * kWidth}}, {}, {b_.whole(gradient_)});
    b_.compute(Work::kZero, {{1}}, {}, {b_.whole(flag_)});
    for (int m = 0; m < kMicroBatches; ++m) {
      forward(m);
    }
    for (int m = 0; m < kMicroBatches; ++m) {
      backward(m);
    }
    finish();
    return b_.end_section();
  }

  std::vector<Buffer> buffers() { return b_.take_buffers(); }

 private:
  std::uint32_t module() const { return static_cast<std::uint32_t>(stage_); }

  BufferId persistent(Category category, std::int64_t elements) {
    AllocOptions options;
    options.lifetime = Lifetime::kPersistent;
    return b_.alloc(category, DType::kFp32, elements, options);
  }

  static Extras on(Stream stream, std::int16_t root = -1, std::uint16_t flags = 0) {
    Extras extras;
    extras.stream = stream;
    extras.root = root;
    extras.flags = flags;
    return extras;
  }

  void forward(int m) {
    b_.at(Phase::kForward, module(), m);
    x_[m] = b_.alloc(Category::kActivation, DType::kFp32, kTokens * kWidth);
    if (stage_ == 0) {
      const View loaded = b_.whole(x_[m]);
      b_.host(Work::kLoadBatch, {{1, kTokens}}, Views(), Views(&loaded, 1));
    } else {
      b_.recv(groups_.pipeline, 0, static_cast<std::uint32_t>(m), b_.whole(x_[m]));
    }
    y_[m] = b_.alloc(Category::kActivation, DType::kFp32, kTokens * kWidth);
    b_.compute(Work::kMatmul,
               {{kTokens, kWidth, kWidth, 1}},
               {b_.whole(x_[m]), b_.whole(weight_)},
               {b_.whole(y_[m])});
    if (stage_ == 0) {
      b_.send(groups_.pipeline, 1, static_cast<std::uint32_t>(m), b_.whole(y_[m]));
    }
  }

  void backward(int m) {
    b_.at(Phase::kBackward, module(), m);
    const auto tag = static_cast<std::uint32_t>(16 + m);
    const BufferId d = b_.alloc(Category::kActivation, DType::kFp32, kTokens * kWidth);
    if (stage_ == 0) {
      b_.recv(groups_.pipeline, 1, tag, b_.whole(d));
    } else {
      b_.compute(Work::kMatmulGradInput,
                 {{kTokens, kWidth, kWidth, 1}},
                 {b_.whole(y_[m]), b_.whole(weight_)},
                 {b_.whole(d)});
      b_.send(groups_.pipeline, 0, tag, b_.whole(d));
    }
    b_.compute(Work::kMatmulGradWeight,
               {{kTokens, kWidth, kWidth, 1}},
               {b_.whole(d), b_.whole(x_[m])},
               {b_.whole(gradient_)},
               on(Stream::kCompute, -1, kAccumulate));
    b_.free(d);
    b_.free(x_[m]);
    b_.free(y_[m]);
  }

  void finish() {
    b_.at(Phase::kReduce, module());
    all_reduce(groups_.data, Reduction::kSum, gradient_, kWidth * kWidth, on(Stream::kData));
    b_.at(Phase::kOptimizer, module());
    b_.compute(Work::kUnscaleAndCheck,
               {},
               {b_.whole(gradient_), b_.whole(scaler_)},
               {b_.whole(flag_), b_.whole(gradient_)});
    all_reduce(groups_.world, Reduction::kMax, flag_, 1, on(Stream::kData, -1, kControl));
    Extras guarded;
    guarded.guard = flag_;
    b_.compute(Work::kSgd,
               {{kWidth * kWidth}},
               {b_.whole(weight_), b_.whole(gradient_)},
               {b_.whole(weight_)},
               guarded);
    b_.compute(Work::kScalerUpdate, {}, {b_.whole(flag_)}, {b_.whole(scaler_)});
    const View read = b_.whole(flag_);
    b_.host(Work::kReadScalar, {}, Views(&read, 1), Views(), on(Stream::kHost, -1, kHostSync));
    b_.free(gradient_);
    b_.free(flag_);
  }

  void all_reduce(std::uint8_t communicator,
                  Reduction reduction,
                  BufferId buffer,
                  std::int64_t elements,
                  const Extras& extras) {
    b_.collective(Collective::kAllReduce,
                  communicator,
                  reduction,
                  elements,
                  b_.whole(buffer),
                  b_.whole(buffer),
                  extras);
  }

  ProgramBuilder b_;
  TwoStageGroups groups_;
  int stage_;
  BufferId weight_ = kNoBuffer;
  BufferId scaler_ = kNoBuffer;
  BufferId gradient_ = kNoBuffer;
  BufferId flag_ = kNoBuffer;
  BufferId x_[kMicroBatches] = {};
  BufferId y_[kMicroBatches] = {};
};

inline constexpr int kInitSection = 0;
inline constexpr int kStepSection = 1;

inline Plan two_stage_plan() {
  PlanBuilder tables(mesh_of(2, 2), two_layer_graph());
  const TwoStageGroups groups{
      tables.communicator(mask_of(Axis::kPipeline)),
      tables.communicator(mask_of(Axis::kData)),
      tables.communicator(mask_of(Axis::kPipeline) | mask_of(Axis::kData), 0, true)};
  Plan& plan = tables.plan();
  plan.class_axes = mask_of(Axis::kPipeline);
  plan.microbatches = kMicroBatches;
  plan.variant_of_iteration = {0};
  plan.sections = {{SectionKind::kInit, 0, {}}, {SectionKind::kStep, 0, {}}};
  for (int stage = 0; stage < 2; ++stage) {
    TwoStageProgram program(tables, groups, stage);
    plan.sections[kInitSection].programs.push_back(program.init());
    plan.sections[kStepSection].programs.push_back(program.step());
    plan.buffers.push_back(program.buffers());
  }
  return plan;
}

// ---- one class ---------------------------------------------------------------------------------

/// A plan of one class whose only step `emit` writes.
inline Plan one_class_plan(const std::function<void(PlanBuilder&, ProgramBuilder&)>& emit,
                           const Mesh& mesh = mesh_of(1, 2)) {
  PlanBuilder tables(mesh, nullptr);
  ProgramBuilder b(tables, ProgramBuilder::Mode::kEmit);
  b.begin_section();
  emit(tables, b);
  Plan plan = tables.plan();
  plan.sections = {{SectionKind::kStep, 0, {}}};
  plan.sections[0].programs.push_back(b.end_section());
  plan.buffers.push_back(b.take_buffers());
  plan.variant_of_iteration = {0};
  return plan;
}

inline Extras extras_on(Stream stream) {
  Extras extras;
  extras.stream = stream;
  return extras;
}

// ---- looking and breaking ----------------------------------------------------------------------

inline Program& program_of(Plan& plan, int section, int class_index) {
  return plan.sections[static_cast<std::size_t>(section)]
      .programs[static_cast<std::size_t>(class_index)];
}

/// Index of the `nth` operation that `matches`.
inline std::uint32_t find_operation(const Program& program,
                                    const std::function<bool(const Operation&)>& matches,
                                    int nth = 0) {
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    if (matches(program.operations[index]) && nth-- == 0) {
      return index;
    }
  }
  throw std::runtime_error("no such operation");
}

inline std::function<bool(const Operation&)> is_kind(OperationKind kind) {
  return [kind](const Operation& op) { return op.kind == kind; };
}

inline std::function<bool(const Operation&)> is_work(Work work) {
  return [work](const Operation& op) { return op.work == work; };
}

/// Takes the operation out; dependencies on it go with it.
inline void remove_operation(Program& program, std::uint32_t index) {
  program.operations.erase(program.operations.begin() + index);
  std::vector<std::uint32_t> kept;
  for (Operation& op : program.operations) {
    const auto first = static_cast<std::uint32_t>(kept.size());
    for (const std::uint32_t on : program.dependencies_of(op)) {
      if (on != index) {
        kept.push_back(on > index && on != kNeverIssued ? on - 1 : on);
      }
    }
    op.first_dependency = first;
    op.dependencies = static_cast<std::uint16_t>(kept.size() - first);
  }
  program.dependencies = kept;
}

/// Takes dependency `nth` of the operation away.
inline void drop_dependency(Program& program, std::uint32_t index, int nth) {
  Operation& op = program.operations[index];
  const auto at = op.first_dependency + static_cast<std::uint32_t>(nth);
  const auto last = op.first_dependency + op.dependencies - 1U;
  std::swap(program.dependencies[at], program.dependencies[last]);
  --op.dependencies;
}

/// Makes the operation wait for all earlier ones.
inline void wait_for_all(Program& program, std::uint32_t index) {
  Operation& op = program.operations[index];
  op.first_dependency = static_cast<std::uint32_t>(program.dependencies.size());
  for (std::uint32_t on = 0; on < index; ++on) {
    program.dependencies.push_back(on);
  }
  op.dependencies = static_cast<std::uint16_t>(index);
}

/// Takes away what orders the computes; the frees wait for everything before them.
inline void unorder_computes(Program& program) {
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    if (program.operations[index].kind == OperationKind::kCompute) {
      program.operations[index].dependencies = 0;
    } else if (program.operations[index].kind == OperationKind::kFree) {
      wait_for_all(program, index);
    }
  }
}

/// Moves the operation one place earlier in issue order.
inline void issue_earlier(Program& program, std::uint32_t index) {
  std::swap(program.operations[index - 1], program.operations[index]);
  for (std::uint32_t& on : program.dependencies) {
    on = on == index ? index - 1 : on == index - 1 ? index : on;
  }
}

/// Problems of one rule only.
inline std::vector<PlanProblem> problems_of(const Plan& plan, PlanRule rule) {
  std::vector<PlanProblem> result;
  const PlanProblems problems = check_plan(plan);
  for (const PlanProblem& problem : problems.list()) {
    if (problem.rule == rule) {
      result.push_back(problem);
    }
  }
  return result;
}

}  // namespace lockstep::test
