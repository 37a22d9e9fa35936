#include "core/planner/data/zero.h"

#include <algorithm>

#include "core/planner/data/bucket_caps.h"
#include "core/planner/norm_layout.h"

namespace lockstep {
namespace {

constexpr std::size_t kMostOperands = 128;

}  // namespace

PartitionedOptimizer::PartitionedOptimizer(const DataParallelInputs& inputs)
    : context_(inputs.context),
      stage_(inputs.stage),
      bucket_of_(inputs.context.graph->parameters.size(), -1),
      weight_(bucket_of_.size(), kNoBuffer),
      gradient_(bucket_of_.size(), kNoBuffer),
      written_(bucket_of_.size(), 0) {}

// ---- buckets -----------------------------------------------------------------------------------

void PartitionedOptimizer::assign_buckets(ProgramBuilder& b) {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> sizes;
  std::vector<std::int32_t> keys;
  std::vector<std::uint8_t> tied;
  for (const std::int32_t segment : stage_.segments) {
    const Segment& each = context_.graph->segments[static_cast<std::size_t>(segment)];
    const auto count = static_cast<std::int32_t>(context_.graph->form(each).parameters.size());
    for (std::int32_t parameter = each.first_parameter; parameter < each.first_parameter + count;
         ++parameter) {
      if (stored(parameter) != parameter) {
        continue;
      }
      // Copies of a tied weight get a bucket of their own: both stages must cut it alike.
      const bool copy = stage_.tied_across_stages &&
                        (parameter == 0 || context_.graph->parameter(parameter).tied);
      ids.push_back(parameter);
      sizes.push_back(elements(parameter));
      keys.push_back(copy ? 1 : 0);
      tied.push_back(copy ? 1 : 0);
    }
  }
  std::vector<std::int32_t> order;
  reverse_registration(static_cast<std::int32_t>(ids.size()), order);
  BucketInput input;
  input.sizes = sizes;
  BucketList list;
  if (options().flavour == ZeroFlavour::kMegatron) {
    MegatronBucketOptions bucketing;
    bucketing.data_parallel = shards();
    bucketing.distributed_optimizer = true;
    bucketing.single_bucket = stage_.coordinate > 0;
    bucketing.tied = tied;
    megatron_buckets(bucketing, input, list);
  } else {
    input.keys = keys;
    input.order = order;
    fill_buckets(input, zero_bucket_elements(options(), size_of(context_.gradient_dtype)), list);
  }
  Layout layout;
  for (int k = 0; k < list.count(); ++k) {
    Shard& each = buckets_.emplace_back();
    for (const std::int32_t member : list.members_of(k)) {
      each.parameters.push_back(ids[static_cast<std::size_t>(member)]);
      bucket_of_[static_cast<std::size_t>(each.parameters.back())] = k;
    }
    build_layout(each, layout);
    each.slice_elements = layout.elements_per_coordinate;
    if (!b.counting()) {
      mark_norm_axes(context_, stage_, layout);
      each.layout = b.tables().layout(layout);
    }
  }
}

void PartitionedOptimizer::build_layout(const Shard& each, Layout& layout) const {
  std::vector<ParameterExtent> extents;
  for (const std::int32_t parameter : each.parameters) {
    extents.push_back(local_extent(context_, parameter));
  }
  if (options().flavour == ZeroFlavour::kMegatron) {
    distributed_optimizer_bucket(extents, shards(), false, layout);
  } else {
    flat_partition(extents, shards(), {1, (deepspeed() ? 2 : 1) * std::int64_t{shards()}}, layout);
  }
}

// ---- init --------------------------------------------------------------------------------------

void PartitionedOptimizer::initialize(ProgramBuilder& b) {
  assign_buckets(b);
  Layout layout;
  for (Shard& each : buckets_) {
    b.at(Phase::kInit);
    const std::int64_t total = each.slice_elements * shards();
    const auto flat = [&](Category category, DType dtype) {
      const BufferId id = b.alloc(
          category, dtype, total, {.lifetime = Lifetime::kPersistent, .layout = each.layout});
      const View all = b.whole(id);
      b.compute(Work::kZero, Shape{{total}}, {}, Views(&all, 1));
      return id;
    };
    each.values = flat(Category::kParameter, context_.parameter_dtype);
    if (stage1()) {
      each.gradients = flat(Category::kGradient, context_.gradient_dtype);
    }
    build_layout(each, layout);
    const auto view_of = [&](BufferId lender, const LayoutEntry& entry) {
      // Entries lie on one ruler: the place in the concatenation is where the view begins.
      return b.alloc(b.buffer(lender).category,
                     b.buffer(lender).dtype,
                     entry.elements(),
                     {.lifetime = Lifetime::kPersistent,
                      .parameter = entry.parameter,
                      .alias_of = lender,
                      .alias_offset = entry.row_shift});
    };
    for (const LayoutEntry& entry : layout.entries) {
      const auto parameter = static_cast<std::size_t>(entry.parameter);
      weight_[parameter] = view_of(each.values, entry);
      const View all = b.whole(weight_[parameter]);
      b.compute(Work::kInitialize, Shape{{all.elements}}, {}, Views(&all, 1));
      if (stage1()) {
        gradient_[parameter] = view_of(each.gradients, entry);
      }
    }
  }
}

void PartitionedOptimizer::create_masters(ProgramBuilder& b) {
  if (!context_.training().has_master_weights()) {
    return;
  }
  for (Shard& each : buckets_) {
    allocate_master(b, context_, slice(each.values, each), {.layout = each.layout}, each.states);
  }
}

void PartitionedOptimizer::allocate_states(ProgramBuilder& b) {
  for (Shard& each : buckets_) {
    allocate_moments(b, context_, each.slice_elements, {.layout = each.layout}, each.states);
  }
}

// ---- step --------------------------------------------------------------------------------------

void PartitionedOptimizer::start_pass() {
  next_ = 0;
  for (Shard& each : buckets_) {
    each.pending = static_cast<int>(each.parameters.size());
  }
}

void PartitionedOptimizer::begin_step(ProgramBuilder&, int) {
  reduction_ = kNoOperation;
  std::fill(written_.begin(), written_.end(), std::uint8_t{0});
  start_pass();
}

View PartitionedOptimizer::weight(ProgramBuilder& b, std::int32_t parameter) {
  return b.whole(weight_[static_cast<std::size_t>(stored(parameter))]);
}

GradientTarget PartitionedOptimizer::gradient(ProgramBuilder& b,
                                              std::int32_t parameter,
                                              const Pass&) {
  parameter = stored(parameter);
  const auto at = static_cast<std::size_t>(parameter);
  if (gradient_[at] == kNoBuffer) {
    gradient_[at] = b.alloc(Category::kGradient,
                            context_.gradient_dtype,
                            elements(parameter),
                            {.parameter = parameter});
    written_[at] = 0;
  }
  const bool accumulate = std::exchange(written_[at], std::uint8_t{1}) != 0;
  return {b.whole(gradient_[at]), accumulate};
}

std::uint16_t PartitionedOptimizer::pre_division(ProgramBuilder& b) const {
  const bool by_tokens = context_.training().loss_mean == LossMean::kGlobalTokens;
  return deepspeed() && !by_tokens ? b.tables().factor(1, shards()) : kNoScalar;
}

Reduction PartitionedOptimizer::reduction() const {
  const bool by_tokens = context_.training().loss_mean == LossMean::kGlobalTokens;
  return deepspeed() || by_tokens ? Reduction::kSum : Reduction::kAverage;
}

void PartitionedOptimizer::gradient_ready(ProgramBuilder& b,
                                          std::int32_t parameter,
                                          const Pass& pass) {
  if (!reduces(pass) || stored(parameter) != parameter) {
    return;
  }
  const int bucket = bucket_of(parameter);
  --shard(bucket).pending;
  if (b.counting() && stage1()) {
    return;  // all at the end: in-place reductions change no memory
  }
  b.at_phase(Phase::kReduce);
  const auto reduce_what_is_ready = [&] {
    while (next_ < static_cast<int>(buckets_.size()) && shard(next_).pending == 0) {
      if (stage1()) {
        reduce_in_place(b, shard(next_));
      } else {
        reduce_message(b, next_);
      }
      ++next_;
    }
  };
  b.interject(reduce_what_is_ready);  // buckets end where they like, whatever the batch
}

/// Stage 1: the flat gradients become this rank's reduced slice (or, all-reduced, everybody's).
void PartitionedOptimizer::reduce_in_place(ProgramBuilder& b, Shard& each) {
  const std::uint8_t group = b.tables().communicator(mask_of(Axis::kData));
  const View all = b.whole(each.gradients);
  if (!deepspeed()) {
    b.collective(Collective::kReduceScatter,
                 group,
                 reduction(),
                 each.slice_elements,
                 all,
                 slice(each.gradients, each),
                 {.stream = Stream::kData});
    return;
  }
  const std::uint16_t factor = pre_division(b);
  if (factor != kNoScalar) {
    b.compute(Work::kScale,
              Shape{{all.elements}},
              Views(&all, 1),
              Views(&all, 1),
              {.flags = kInPlace, .scalar = factor});
  }
  b.collective(Collective::kAllReduce,
               group,
               reduction(),
               all.elements,
               all,
               all,
               {.stream = Stream::kData});
}

void PartitionedOptimizer::free_message(ProgramBuilder& b) {
  if (in_flight_ >= 0) {
    b.wait(reduction_);
    b.free(std::exchange(shard(in_flight_).message, kNoBuffer));
    if (added_ != kNoBuffer) {
      b.free(std::exchange(added_, kNoBuffer));
    }
    in_flight_ = -1;
  }
}

/// Stage 2: gradients move into a message, are freed, and only this rank's slice comes back. One
/// message is under way at a time: the next is filled when the last is reduced.
void PartitionedOptimizer::reduce_message(ProgramBuilder& b, int bucket) {
  Shard& each = shard(bucket);
  const std::uint8_t group = b.tables().communicator(mask_of(Axis::kData));
  free_message(b);
  fill_message(b, each);
  const View all = b.whole(each.message);
  in_flight_ = bucket;
  const bool first = each.reduced == kNoBuffer;
  if (first) {
    each.reduced = b.alloc(
        Category::kGradient, context_.gradient_dtype, each.slice_elements, {.layout = each.layout});
  }
  const View sum = b.whole(each.reduced);
  const Shape shape{{each.slice_elements}};
  if (deepspeed()) {
    reduction_ = b.collective(Collective::kAllReduce,
                              group,
                              reduction(),
                              all.elements,
                              all,
                              all,
                              {.stream = Stream::kData});
    const View own[] = {sum, slice(each.message, each)};
    if (first) {
      b.compute(Work::kPack, shape, Views(own + 1, 1), Views(&sum, 1), {.stream = Stream::kData});
    } else {
      b.compute(
          Work::kAdd, shape, own, Views(&sum, 1), {.stream = Stream::kData, .flags = kInPlace});
    }
    return;
  }
  const BufferId output = first ? each.reduced
                                : b.alloc(Category::kCommunication,
                                          context_.gradient_dtype,
                                          each.slice_elements,
                                          {.layout = each.layout});
  reduction_ = b.collective(Collective::kReduceScatter,
                            group,
                            reduction(),
                            each.slice_elements,
                            all,
                            b.whole(output),
                            {.stream = Stream::kData});
  if (!first) {
    const View operands[] = {sum, b.whole(output)};
    b.compute(
        Work::kAdd, shape, operands, Views(&sum, 1), {.stream = Stream::kData, .flags = kInPlace});
    added_ = output;  // freed here it would make the next backward wait for this reduction
  }
}

void PartitionedOptimizer::fill_message(ProgramBuilder& b, Shard& each) {
  each.message = b.alloc(Category::kCommunication,
                         context_.gradient_dtype,
                         each.slice_elements * shards(),
                         {.layout = each.layout});
  const View all = b.whole(each.message);
  std::vector<View> parts;
  for (std::size_t first = 0; first < each.parameters.size(); first += kMostOperands) {
    parts.clear();
    std::int64_t count = 0;
    const std::size_t last = std::min(first + kMostOperands, each.parameters.size());
    for (std::size_t i = first; i < last; ++i) {
      parts.push_back(b.whole(gradient_[static_cast<std::size_t>(each.parameters[i])]));
      count += parts.back().elements;
    }
    b.compute(Work::kPack,
              Shape{{count}},
              parts,
              Views(&all, 1),
              {.scalar = pre_division(b), .layout = each.layout});
  }
  for (const std::int32_t parameter : each.parameters) {
    b.free(std::exchange(gradient_[static_cast<std::size_t>(parameter)], kNoBuffer));
  }
}

void PartitionedOptimizer::end_microbatch(ProgramBuilder& b, const Pass&) {
  if (!stage1()) {
    free_message(b);
    start_pass();
  }
}

void PartitionedOptimizer::finish_gradients(ProgramBuilder& b) {
  if (stage1() && b.counting()) {
    for (Shard& each : buckets_) {
      reduce_in_place(b, each);
    }
  }
}

void PartitionedOptimizer::for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) {
  for (Shard& each : buckets_) {
    OwnedPiece piece;
    piece.elements = each.slice_elements;
    piece.layout = each.layout;
    piece.gradient = stage1() ? slice(each.gradients, each) : b.whole(each.reduced);
    piece.states = each.states.all();
    const bool has_master = each.states.master != kNoBuffer;
    piece.parameter = has_master ? b.whole(each.states.master) : slice(each.values, each);
    piece.compute = has_master ? slice(each.values, each) : View{};
    visit({&piece, 1});
  }
}

void PartitionedOptimizer::finish_step(ProgramBuilder& b) {
  const bool updated = b.phase() == Phase::kOptimizer;
  for (Shard& each : buckets_) {
    if (updated) {
      b.collective(Collective::kAllGather,
                   b.tables().communicator(mask_of(Axis::kData)),
                   Reduction::kNone,
                   each.slice_elements,
                   slice(each.values, each),
                   b.whole(each.values),
                   {.stream = Stream::kData});
    }
    if (each.reduced != kNoBuffer) {
      b.free(std::exchange(each.reduced, kNoBuffer));
    }
  }
}

View PartitionedOptimizer::reduced_gradient(ProgramBuilder& b, std::int32_t parameter) {
  Shard& each = shard(bucket_of(stored(parameter)));
  return stage1() ? slice(each.gradients, each) : b.whole(each.reduced);
}

View PartitionedOptimizer::stored_parameter(ProgramBuilder& b, std::int32_t parameter) {
  return weight(b, parameter);
}

void PartitionedOptimizer::save(ProgramBuilder& b) {
  for (Shard& each : buckets_) {
    std::vector<View> parts{slice(each.values, each)};
    if (each.states.master != kNoBuffer) {
      parts.push_back(b.whole(each.states.master));
    }
    for (const BufferId state : each.states.all()) {
      parts.push_back(b.whole(state));
    }
    b.host(Work::kWriteShard, Shape{{each.slice_elements}}, parts, {}, {.layout = each.layout});
  }
}

}  // namespace lockstep
