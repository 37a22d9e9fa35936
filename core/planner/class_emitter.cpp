#include "core/planner/class_emitter.h"

#include "core/planner/optimizer.h"

namespace lockstep {
namespace {

Program& program_of(Plan& plan, SectionKind kind, int variant, Program program) {
  for (Section& section : plan.sections) {
    if (section.kind == kind && section.variant == variant) {
      return section.programs.emplace_back(std::move(program));
    }
  }
  Section& section = plan.sections.emplace_back();
  section.kind = kind;
  section.variant = variant;
  return section.programs.emplace_back(std::move(program));
}

}  // namespace

ClassEmitter::ClassEmitter(PlanBuilder& tables,
                           const PlannerContext& context,
                           const StageLayout& stage,
                           const Schedule& schedule,
                           int data_coordinate,
                           ProgramBuilder::Mode mode)
    : context_(context), stage_(stage), schedule_(schedule), b_(tables, mode) {
  data_ = make_data_parallelism({context_, stage_, buffers_, data_coordinate});
}

int ClassEmitter::variants() const {
  const TrainingSpec& training = context_.training();
  const bool lazy = training.optimizer_state == OptimizerStateCreation::kLazy &&
                    training.optimizer != OptimizerKind::kSgd;
  return std::max(data_->variants(), lazy ? 2 : 1);
}

void ClassEmitter::emit(Plan& plan, const PlanOptions& options) {
  b_.begin_section();
  run_init();
  program_of(plan, SectionKind::kInit, 0, b_.end_section());
  plan.variant_of_iteration.clear();
  for (int variant = 0; variant < variants(); ++variant) {
    b_.begin_section();
    run_step(variant);
    program_of(plan, SectionKind::kStep, variant, b_.end_section());
    plan.variant_of_iteration.push_back(variant);
  }
  if (options.evaluate) {
    b_.begin_section();
    run_evaluate();
    program_of(plan, SectionKind::kEvaluate, 0, b_.end_section());
  }
  if (options.save) {
    b_.begin_section();
    run_save();
    program_of(plan, SectionKind::kSave, 0, b_.end_section());
  }
}

ProgramSummary ClassEmitter::count_steady_step() {
  begin_steady_step();
  run_step(variants() - 1);
  b_.end_section();
  return b_.summary();
}

void ClassEmitter::count_passes() {
  begin_steady_step();
  run_passes(variants() - 1);
  b_.end_section();
}

void ClassEmitter::begin_steady_step() {
  b_.begin_section();
  b_.mute(true);  // init matters for what it leaves behind
  run_init();
  if (context_.training().optimizer_state == OptimizerStateCreation::kLazy) {
    data_->allocate_states(b_);
  }
  b_.mute(false);
  b_.end_section();
  b_.begin_section();
}

// ---- init --------------------------------------------------------------------------------------

namespace {

/// torch.cuda.amp.GradScaler's.
constexpr std::int64_t kFirstLossScale = 65536;

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
};

}  // namespace

void ClassEmitter::allocate_stage_buffers() {
  // Numbers start at 0 but for elements [first, last), which start at the scalar.
  const auto number = [&](Category category,
                          DType dtype,
                          std::int64_t elements,
                          const Range& ones = {},
                          std::int64_t start = 1) {
    const BufferId id = b_.alloc(category, dtype, elements, {.lifetime = Lifetime::kPersistent});
    const View all = b_.whole(id);
    b_.compute(Work::kInitialize,
               Shape{{elements, ones.first, ones.last}},
               {},
               Views(&all, 1),
               {.scalar = b_.tables().factor(start, 1)});
    return id;
  };
  b_.at(Phase::kInit);
  const TrainingSpec& training = context_.training();
  if (stage_.has_head) {
    buffers_.loss = number(Category::kTemporary, context_.wide_dtype, 1);
    if (training.loss_mean == LossMean::kGlobalTokens) {
      buffers_.token_count = number(Category::kTemporary, DType::kInt64, 1);
    }
  }
  if (training.scales_loss()) {
    buffers_.scaler = number(Category::kOptimizer, context_.wide_dtype, 2, {0, 1}, kFirstLossScale);
    buffers_.overflow = number(Category::kOptimizer, context_.wide_dtype, 1);
  }
  if (context_.graph->model.mlp_norm == MlpNormKind::kNone) {
    return;
  }
  buffers_.running.assign(context_.graph->segments.size(), kNoBuffer);
  buffers_.counters.assign(context_.graph->segments.size(), kNoBuffer);
  for (const std::int32_t segment : stage_.segments) {
    const SegmentTemplate& form =
        context_.graph->form(context_.graph->segments[static_cast<std::size_t>(segment)]);
    for (const ModuleDef& module : form.modules) {
      if (module.kind == ModuleKind::kBatchNorm) {
        const std::int64_t width = form.tensors[static_cast<std::size_t>(module.outputs[0])].width;
        buffers_.running[static_cast<std::size_t>(segment)] =
            number(Category::kParameter, context_.wide_dtype, 2 * width, {width, 2 * width});
        buffers_.counters[static_cast<std::size_t>(segment)] =
            number(Category::kParameter, DType::kInt64, 1);
      }
    }
  }
}

void ClassEmitter::run_init() {
  allocate_stage_buffers();
  data_->initialize(b_);
  if (stage_.tied_across_stages) {
    tie_initial_weights();
  }
  b_.at(Phase::kInit);
  data_->create_masters(b_);
  if (context_.training().optimizer_state == OptimizerStateCreation::kEager) {
    data_->allocate_states(b_);
  }
}

namespace {

std::uint64_t first_and_last(const PlannerContext& context) {
  return std::uint64_t{1} |
         (std::uint64_t{1} << static_cast<unsigned>(context.mesh.size(Axis::kPipeline) - 1));
}

}  // namespace

/// Both copies of a tied weight start as the first stage's.
void ClassEmitter::tie_initial_weights() {
  const std::int32_t parameter = stage_.has_embedding ? 0 : context_.graph->parameter_total() - 1;
  const View weight = data_->stored_parameter(b_, parameter);
  b_.collective(Collective::kBroadcast,
                b_.tables().communicator(mask_of(Axis::kPipeline), first_and_last(context_)),
                Reduction::kNone,
                weight.elements,
                weight,
                weight,
                {.stream = Stream::kPipeline, .root = 0});
}

// ---- step --------------------------------------------------------------------------------------

void ClassEmitter::count_tokens() {
  if (buffers_.token_count == kNoBuffer) {
    return;
  }
  const View count = b_.whole(buffers_.token_count);
  b_.at(Phase::kForward);
  b_.host(Work::kCountTokens, Shape{{1}}, {count});
  const AxisMask axes = kDataAxes & present_axes(context_.mesh);
  if (axes != 0) {
    b_.collective(Collective::kAllReduce,
                  b_.tables().communicator(axes, 0, true),
                  Reduction::kSum,
                  1,
                  count,
                  count,
                  {.stream = Stream::kData, .flags = kControl});
  }
}

void ClassEmitter::report_loss(Phase phase) {
  if (buffers_.loss == kNoBuffer) {
    return;
  }
  b_.at(phase);
  data_->report_loss(b_, b_.whole(buffers_.loss));
}

/// The two copies of a tied weight get the sum of both gradients (Megatron-LM,
/// finalize_model_grads.py: _allreduce_word_embedding_grads).
void ClassEmitter::reduce_tied_gradient() {
  const std::int32_t parameter = stage_.has_embedding ? 0 : context_.graph->parameter_total() - 1;
  b_.at(Phase::kReduce);
  const View gradient = data_->reduced_gradient(b_, parameter);
  b_.collective(Collective::kAllReduce,
                b_.tables().communicator(mask_of(Axis::kPipeline), first_and_last(context_)),
                Reduction::kSum,
                gradient.elements,
                gradient,
                gradient,
                {.stream = Stream::kPipeline});
}

void ClassEmitter::run_step(int variant) {
  run_passes(variant);
  b_.piece({PieceKind::kEnd}, {}, [&] { end_step(variant); });
}

void ClassEmitter::run_passes(int variant) {
  b_.piece({PieceKind::kBegin}, {}, [&] {
    b_.at(Phase::kForward);
    data_->begin_step(b_, std::min(variant, data_->variants() - 1));
    count_tokens();
  });
  StageEmitter stage(context_, stage_, schedule_, b_, *data_, buffers_);
  stage.run_step();
}

void ClassEmitter::end_step(int variant) {
  b_.at(Phase::kReduce);
  data_->finish_gradients(b_);
  if (stage_.tied_across_stages) {
    reduce_tied_gradient();
  }
  const bool lazy = context_.training().optimizer_state == OptimizerStateCreation::kLazy;
  if (lazy && variant == 0 && !b_.counting()) {
    b_.at(Phase::kOptimizer);
    data_->allocate_states(b_);
  }
  emit_optimizer(b_, context_, buffers_, *data_);
  b_.at(Phase::kOptimizer);
  data_->finish_step(b_);
  report_loss(Phase::kOptimizer);
}

void ClassEmitter::run_evaluate() {
  count_tokens();
  StageEmitter stage(context_, stage_, schedule_, b_, *data_, buffers_);
  stage.run_evaluation();
  b_.at(Phase::kEvaluate);
  data_->finish_step(b_);
  report_loss(Phase::kEvaluate);
}

/// Running statistics are every rank's own: no layout says whose elements they are.
void ClassEmitter::save_statistics() {
  for (const std::int32_t id : stage_.segments) {
    const auto index = static_cast<std::size_t>(id);
    if (buffers_.running.empty() || buffers_.running[index] == kNoBuffer) {
      continue;
    }
    const Segment& segment = context_.graph->segments[index];
    const std::vector<ModuleDef>& modules = context_.graph->form(segment).modules;
    const auto norm = std::find_if(modules.begin(), modules.end(), [](const ModuleDef& module) {
      return module.kind == ModuleKind::kBatchNorm;
    });
    b_.at(Phase::kSave,
          static_cast<std::uint32_t>(segment.first_module + (norm - modules.begin())));
    const View running = b_.whole(buffers_.running[index]);
    b_.host(Work::kWriteShard, Shape{{running.elements}}, Views(&running, 1), {});
  }
}

void ClassEmitter::run_save() {
  b_.at(Phase::kSave);
  data_->save(b_);
  save_statistics();
  b_.at(Phase::kSave);
  const AxisMask everybody = present_axes(context_.mesh);
  const BufferId token = b_.alloc(Category::kTemporary, DType::kInt32, 1);
  const View all = b_.whole(token);
  b_.compute(Work::kZero, Shape{{1}}, {}, Views(&all, 1));
  if (everybody != 0) {
    b_.collective(Collective::kBarrier,
                  b_.tables().communicator(everybody, 0, true),
                  Reduction::kNone,
                  1,
                  all,
                  all,
                  {.stream = Stream::kData, .flags = kControl | kHostSync});
  }
  b_.host(Work::kCommit, Shape{}, Views(&all, 1), {});
  b_.free(token);
}

}  // namespace lockstep
