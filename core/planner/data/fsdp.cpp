#include "core/planner/data/fsdp.h"

#include <algorithm>

#include "core/planner/norm_layout.h"

namespace lockstep {
namespace {

/// Operand counts are bytes; wide units are copied in several operations.
constexpr std::size_t kMostOperands = 128;

}  // namespace

ShardedParameters::ShardedParameters(const DataParallelInputs& inputs)
    : context_(inputs.context),
      stage_(inputs.stage),
      unit_of_position_(inputs.stage.segments.size(), kNoUnit),
      unit_of_parameter_(inputs.context.graph->parameters.size(), kNoUnit),
      full_(unit_of_parameter_.size(), kNoBuffer),
      gradient_(unit_of_parameter_.size(), kNoBuffer) {}

std::int32_t ShardedParameters::stored(std::int32_t parameter) const {
  return stage_.has_embedding && context_.graph->parameter(parameter).tied ? 0 : parameter;
}

std::int64_t ShardedParameters::elements(std::int32_t parameter) const {
  return context_.local_elements(context_.graph->parameter(parameter));
}

DType ShardedParameters::gathered_dtype() const {
  // autocast with sharded parameters is MixedPrecisionPolicy(param_dtype): gathered in 16 bits.
  return context_.activation_dtype;
}

// ---- units -------------------------------------------------------------------------------------

/// A block is a unit; all else is the root unit. ZeRO-3 has no root: every segment is a unit,
/// unless the head shares the embedding's weight.
void ShardedParameters::build_units(ProgramBuilder& b) {
  const bool shares =
      stage_.has_embedding && stage_.has_head && context_.graph->model.tied_embeddings;
  const bool all_own = options().kind == DataKind::kZero3 && !shares;
  for (int chunk = 0; chunk < stage_.chunks(); ++chunk) {
    const PositionRange blocks = block_range(*context_.graph, stage_, chunk);
    const bool folds = b.counting() && uniform_blocks() && blocks.last - blocks.first > 2;
    for (int position = stage_.begin(chunk); position < stage_.end(chunk); ++position) {
      // Counting: all middle blocks are one unit, the one whose hooks run.
      if (folds && position > blocks.first + 1 && position < blocks.last - 1) {
        unit_of_position_[static_cast<std::size_t>(position)] = unit_of(blocks.first + 1);
      } else {
        add_to_unit(position, all_own);
      }
    }
  }
  if (shares) {
    unit_of_parameter_.back() = root_;
  }
  Layout layout;
  for (Unit& each : units_) {
    build_layout(each, layout);
    each.shard_elements = layout.elements_per_coordinate;
    if (!b.counting()) {
      mark_norm_axes(context_, stage_, layout);
      each.layout = b.tables().layout(layout);
    }
  }
}

/// Gives the segment a unit of its own, or makes it part of the root unit.
void ShardedParameters::add_to_unit(int position, bool always_own) {
  const ModelGraph& graph = *context_.graph;
  const Segment& segment = graph.segments[static_cast<std::size_t>(stage_.segment(position))];
  const bool block = segment.layer >= 0 && options().wrap == WrapPolicy::kBlock;
  const bool own = block || always_own;
  if (!own && root_ == kNoUnit) {
    root_ = static_cast<int>(units_.size());
    units_.emplace_back().root = true;
  }
  const int index = own ? static_cast<int>(units_.size()) : root_;
  if (own) {
    units_.emplace_back();
  }
  unit_of_position_[static_cast<std::size_t>(position)] = index;
  const auto count = static_cast<std::int32_t>(graph.form(segment).parameters.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t parameter = segment.first_parameter + i;
    if (stored(parameter) == parameter) {
      unit(index).parameters.push_back(parameter);
    }
    unit_of_parameter_[static_cast<std::size_t>(parameter)] = index;
  }
}

void ShardedParameters::build_layout(const Unit& each, Layout& layout) const {
  std::vector<ParameterExtent> extents;
  extents.reserve(each.parameters.size());
  for (const std::int32_t parameter : each.parameters) {
    extents.push_back(local_extent(context_, parameter));
  }
  if (options().kind == DataKind::kZero3) {
    flat_per_parameter(extents, shards(), layout);
  } else {
    shard_dim0(extents, shards(), layout);
  }
}

/// body(unit) for all units; blocks under repeat.
template <typename Body>
void ShardedParameters::for_each_unit(ProgramBuilder& b, Body&& body) {
  if (root_ != kNoUnit) {
    body(unit(root_));
  }
  for (int chunk = 0; chunk < stage_.chunks(); ++chunk) {
    for_each_position(b, stage_, chunk, false, uniform_blocks(), [&](int position) {
      if (unit_of(position) != root_) {
        body(unit(unit_of(position)));
      }
    });
  }
}

// ---- init --------------------------------------------------------------------------------------

void ShardedParameters::initialize(ProgramBuilder& b) {
  build_units(b);
  // FSDP2 shards the fp32 parameters themselves; ZeRO-3 shards 16-bit ones beside fp32 masters.
  const DType dtype =
      options().kind == DataKind::kZero3 ? context_.parameter_dtype : context_.wide_dtype;
  for_each_unit(b, [&](Unit& each) {
    b.at(Phase::kInit);
    each.shard = b.alloc(Category::kParameter,
                         dtype,
                         each.shard_elements,
                         {.lifetime = Lifetime::kPersistent, .layout = each.layout});
    const View all = b.whole(each.shard);
    b.compute(Work::kInitialize,
              Shape{{each.shard_elements}},
              {},
              Views(&all, 1),
              {.layout = each.layout});
  });
}

void ShardedParameters::create_masters(ProgramBuilder& b) {
  if (options().kind != DataKind::kZero3 || !context_.training().has_master_weights()) {
    return;
  }
  for_each_unit(b, [&](Unit& each) {
    allocate_master(b, context_, b.whole(each.shard), {.layout = each.layout}, each.states);
  });
}

void ShardedParameters::allocate_states(ProgramBuilder& b) {
  for_each_unit(b, [&](Unit& each) {
    allocate_moments(b, context_, each.shard_elements, {.layout = each.layout}, each.states);
  });
}

// ---- gather and reshard ------------------------------------------------------------------------

void ShardedParameters::begin_step(ProgramBuilder&, int) {}

/// Pipelines keep parameters gathered and gradients whole until a stage's last micro-batch.
bool ShardedParameters::keeps_until_last() const {
  return context_.mesh.size(Axis::kPipeline) > 1;
}

bool ShardedParameters::reduces(const Pass& pass) const {
  return !keeps_until_last() || pass.last_backward;
}

bool ShardedParameters::stays_after_forward(const Unit& each) const {
  return each.root || options().reshard == Reshard::kOff || keeps_until_last();
}

/// Copy-in on the copy stream, then the all-gather in place (fsdp_collectives.py), as soon as a
/// gather buffer is free. What was resharded to a group is gathered inside the group.
void ShardedParameters::start_gather(ProgramBuilder& b, int index) {
  Unit& each = unit(index);
  const bool grouped = each.regrouped != kNoBuffer;
  const Axis axis = grouped ? Axis::kData : shard_axis();
  const BufferId source = grouped ? each.regrouped : each.shard;
  const std::int64_t elements = b.buffer(source).elements;
  each.gathering = b.alloc(Category::kCommunication,
                           gathered_dtype(),
                           each.shard_elements * shards(),
                           {.layout = each.layout});
  const View shard = b.whole(source);
  const View slice = ProgramBuilder::slice(each.gathering, axis, elements);
  b.compute(Work::kPack,
            Shape{{elements}},
            Views(&shard, 1),
            Views(&slice, 1),
            {.stream = Stream::kCopy, .after = {&gather_after_, 1}});
  b.collective(Collective::kAllGather,
               b.tables().communicator(grouped ? mask_of(Axis::kData) : shard_axes()),
               Reduction::kNone,
               elements,
               slice,
               b.whole(each.gathering),
               {.stream = Stream::kData});
  if (grouped) {
    b.free(std::exchange(each.regrouped, kNoBuffer));
  }
}

/// After forward this rank keeps its 1/k of the gathered parameters, so that backward gathers
/// inside a group of k (reshard_after_forward=k).
void ShardedParameters::regroup(ProgramBuilder& b, Unit& each) {
  const std::int64_t elements = each.shard_elements * context_.mesh.size(Axis::kDataReplica);
  each.regrouped = b.alloc(Category::kGatheredParameter, gathered_dtype(), elements);
  const View part = ProgramBuilder::slice(held_gather_, Axis::kData, elements);
  const View kept = b.whole(each.regrouped);
  b.compute(Work::kPack, Shape{{elements}}, Views(&part, 1), Views(&kept, 1));
}

/// Copy-out into whole parameters on the compute stream. Forward lends two gather buffers in turn:
/// a later copy-in waits for the copy-out of the unit before this one; backward has one, and it
/// waits for this copy-out (FSDPParamGroup.wait_for_unshard, fsdp_param_group.py).
void ShardedParameters::finish_gather(ProgramBuilder& b, int index, bool forward) {
  Unit& each = unit(index);
  if (held_gather_ != kNoBuffer) {
    b.free(std::exchange(held_gather_, kNoBuffer));
  }
  const View gathered = b.whole(each.gathering);
  std::vector<View> parts;
  OperationId copied_out = kNoOperation;
  for (std::size_t first = 0; first < each.parameters.size(); first += kMostOperands) {
    parts.clear();
    std::int64_t count = 0;
    const std::size_t last = std::min(first + kMostOperands, each.parameters.size());
    for (std::size_t i = first; i < last; ++i) {
      const std::int32_t parameter = each.parameters[i];
      BufferId& full = full_[static_cast<std::size_t>(parameter)];
      full = b.alloc(Category::kGatheredParameter,
                     gathered_dtype(),
                     elements(parameter),
                     {.parameter = parameter});
      parts.push_back(b.whole(full));
      count += parts.back().elements;
    }
    copied_out = b.compute(
        Work::kUnpack, Shape{{count}}, Views(&gathered, 1), parts, {.layout = each.layout});
  }
  gather_after_ = forward ? held_copy_out_ : copied_out;
  held_copy_out_ = forward ? copied_out : kNoOperation;
  each.gathered = true;
  const BufferId output = std::exchange(each.gathering, kNoBuffer);
  if (forward) {
    held_gather_ = output;  // until the next copy-out: two gather buffers are alive between
  } else {
    b.free(output);
  }
}

void ShardedParameters::unshard(ProgramBuilder& b, int index, bool forward) {
  Unit& each = unit(index);
  if (each.gathered) {
    return;
  }
  if (each.gathering == kNoBuffer) {
    start_gather(b, index);
  }
  finish_gather(b, index, forward);
}

void ShardedParameters::reshard(ProgramBuilder& b, Unit& each) {
  if (!each.gathered) {
    return;
  }
  for (const std::int32_t parameter : each.parameters) {
    b.free(std::exchange(full_[static_cast<std::size_t>(parameter)], kNoBuffer));
  }
  each.gathered = false;
}

bool ShardedParameters::first_position(int position) const {
  return position == stage_.begin(0);
}

void ShardedParameters::before_forward(ProgramBuilder& b, int position, const Pass&) {
  if (root_ != kNoUnit && first_position(position)) {
    unshard(b, root_, true);
  }
  unshard(b, unit_of(position), true);
}

void ShardedParameters::after_forward(ProgramBuilder& b, int position, const Pass&) {
  Unit& each = unit(unit_of(position));
  if (stays_after_forward(each)) {
    return;
  }
  if (regroups() && b.phase() != Phase::kEvaluate) {
    regroup(b, each);
  }
  reshard(b, each);
}

void ShardedParameters::before_backward(ProgramBuilder& b, int position, const Pass&) {
  unshard(b, unit_of(position), false);
  // The next unit is gathered while this one's gradients are computed.
  if (!options().backward_prefetch || position == 0) {
    return;
  }
  const int next = unit_of(position - 1);
  if (next != root_ && next != unit_of(position) && !unit(next).gathered &&
      unit(next).gathering == kNoBuffer) {
    start_gather(b, next);
  }
}

View ShardedParameters::weight(ProgramBuilder& b, std::int32_t parameter) {
  return b.whole(full_[static_cast<std::size_t>(stored(parameter))]);
}

// ---- gradients ---------------------------------------------------------------------------------

GradientTarget ShardedParameters::gradient(ProgramBuilder& b, std::int32_t parameter, const Pass&) {
  parameter = stored(parameter);
  BufferId& buffer = gradient_[static_cast<std::size_t>(parameter)];
  if (buffer != kNoBuffer) {
    return {b.whole(buffer), true};
  }
  buffer =
      b.alloc(Category::kGradient, gathered_dtype(), elements(parameter), {.parameter = parameter});
  return {b.whole(buffer), false};
}

void ShardedParameters::after_backward(ProgramBuilder& b, int position, const Pass& pass) {
  if (!reduces(pass)) {
    return;
  }
  const int index = unit_of(position);
  if (index != root_) {
    reshard(b, unit(index));
    reduce(b, index);
  }
  if (root_ != kNoUnit && first_position(position)) {
    reshard(b, unit(root_));
    reduce(b, root_);
  }
}

void ShardedParameters::wait_pending(ProgramBuilder& b) {
  if (pending_ != kNoUnit) {
    b.wait(last_reduction_);
    b.free(std::exchange(unit(pending_).pending, kNoBuffer));
    if (added_ != kNoBuffer) {
      b.free(std::exchange(added_, kNoBuffer));
    }
    pending_ = kNoUnit;
  }
}

/// Waits for the previous unit's reduce-scatter (one may be outstanding), packs the gradients by
/// shard in the reduction dtype, and reduces into the sharded gradient.
void ShardedParameters::reduce(ProgramBuilder& b, int index) {
  Unit& each = unit(index);
  wait_pending(b);
  const DType dtype = reduce_dtype();
  const BufferId input = b.alloc(
      Category::kCommunication, dtype, each.shard_elements * shards(), {.layout = each.layout});
  const bool by_tokens = context_.training().loss_mean == LossMean::kGlobalTokens;
  const bool predivides = options().kind == DataKind::kZero3 && !by_tokens;
  pack_gradients(b, each, input, predivides);
  const Reduction reduction = by_tokens || predivides ? Reduction::kSum : Reduction::kAverage;
  const bool first = each.gradient == kNoBuffer;
  const BufferId output = b.alloc(first ? Category::kGradient : Category::kCommunication,
                                  dtype,
                                  each.shard_elements,
                                  {.layout = each.layout});
  last_reduction_ = b.collective(Collective::kReduceScatter,
                                 b.tables().communicator(shard_axes()),
                                 reduction,
                                 each.shard_elements,
                                 b.whole(input),
                                 b.whole(output),
                                 {.stream = Stream::kData});
  Stream last = Stream::kData;
  if (options().kind == DataKind::kHsdp) {
    last = Stream::kDataReplica;
    b.collective(Collective::kAllReduce,
                 b.tables().communicator(mask_of(Axis::kDataReplica)),
                 by_tokens ? Reduction::kSum : Reduction::kAverage,
                 each.shard_elements,
                 b.whole(output),
                 b.whole(output),
                 {.stream = last});
  }
  each.pending = input;
  pending_ = index;
  if (first) {
    each.gradient = output;
    return;
  }
  const View sum = b.whole(each.gradient);
  const View operands[] = {sum, b.whole(output)};
  b.compute(Work::kAdd,
            Shape{{each.shard_elements}},
            operands,
            Views(&sum, 1),
            {.stream = last, .flags = kInPlace});
  added_ = output;  // freed here it would make the next backward wait for this reduction
}

DType ShardedParameters::reduce_dtype() const {
  const TrainingSpec& training = context_.training();
  if (training.reduce_dtype) {
    return *training.reduce_dtype;
  }
  return options().kind == DataKind::kZero3 ? context_.gradient_dtype : context_.wide_dtype;
}

void ShardedParameters::pack_gradients(ProgramBuilder& b,
                                       Unit& each,
                                       BufferId input,
                                       bool predivides) {
  std::vector<View> parts;
  const View whole = b.whole(input);
  for (std::size_t first = 0; first < each.parameters.size(); first += kMostOperands) {
    parts.clear();
    std::int64_t count = 0;
    const std::size_t last = std::min(first + kMostOperands, each.parameters.size());
    for (std::size_t i = first; i < last; ++i) {
      parts.push_back(b.whole(gradient_[static_cast<std::size_t>(each.parameters[i])]));
      count += parts.back().elements;
    }
    Extras extras;
    extras.layout = each.layout;
    extras.scalar = predivides ? b.tables().factor(1, shards()) : kNoScalar;
    b.compute(Work::kPack, Shape{{count}}, parts, Views(&whole, 1), extras);
  }
  for (const std::int32_t parameter : each.parameters) {
    b.free(std::exchange(gradient_[static_cast<std::size_t>(parameter)], kNoBuffer));
  }
}

/// The root's callback at the end of every backward waits for the last reduce-scatter, and the
/// first copy-in of the next forward for what the compute stream has waited for.
void ShardedParameters::end_microbatch(ProgramBuilder& b, const Pass&) {
  if (!keeps_until_last()) {
    wait_pending(b);
    gather_after_ = last_reduction_;
  }
}

void ShardedParameters::finish_gradients(ProgramBuilder& b) {
  wait_pending(b);
}

// ---- optimizer ---------------------------------------------------------------------------------

void ShardedParameters::for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) {
  for_each_unit(b, [&](Unit& each) {
    OwnedPiece piece;
    piece.elements = each.shard_elements;
    piece.layout = each.layout;
    piece.gradient = b.whole(each.gradient);
    piece.states = each.states.all();
    const bool has_master = each.states.master != kNoBuffer;
    piece.parameter = b.whole(has_master ? each.states.master : each.shard);
    piece.compute = has_master ? b.whole(each.shard) : View{};
    visit({&piece, 1});
  });
}

void ShardedParameters::finish_step(ProgramBuilder& b) {
  if (held_gather_ != kNoBuffer) {
    b.free(std::exchange(held_gather_, kNoBuffer));
  }
  for_each_unit(b, [&](Unit& each) {
    reshard(b, each);
    if (each.gradient != kNoBuffer) {
      b.free(std::exchange(each.gradient, kNoBuffer));
    }
  });
  held_copy_out_ = gather_after_ = last_reduction_ = kNoOperation;
}

View ShardedParameters::shard_view(ProgramBuilder& b,
                                   std::int32_t parameter,
                                   BufferId buffer) const {
  const auto index =
      static_cast<std::size_t>(unit_of_parameter_[static_cast<std::size_t>(parameter)]);
  Layout layout;
  build_layout(units_[index], layout);
  for (const LayoutEntry& entry : layout.entries) {
    if (entry.parameter == parameter) {
      return ProgramBuilder::range(
          buffer, entry.flat_offset, entry.rows_per_coordinate * entry.row_elements);
    }
  }
  LOCKSTEP_CHECK(false, "parameter is not in its unit");
  return b.whole(buffer);
}

View ShardedParameters::reduced_gradient(ProgramBuilder& b, std::int32_t parameter) {
  const int index = unit_of_parameter_[static_cast<std::size_t>(parameter)];
  return shard_view(b, stored(parameter), unit(index).gradient);
}

View ShardedParameters::stored_parameter(ProgramBuilder& b, std::int32_t parameter) {
  const int index = unit_of_parameter_[static_cast<std::size_t>(parameter)];
  return shard_view(b, stored(parameter), unit(index).shard);
}

void ShardedParameters::save(ProgramBuilder& b) {
  for_each_unit(b, [&](Unit& each) {
    std::vector<View> parts{b.whole(each.shard)};
    if (each.states.master != kNoBuffer) {
      parts.push_back(b.whole(each.states.master));
    }
    for (const BufferId state : each.states.all()) {
      parts.push_back(b.whole(state));
    }
    b.host(Work::kWriteShard, Shape{{each.shard_elements}}, parts, {}, {.layout = each.layout});
  });
}

}  // namespace lockstep
