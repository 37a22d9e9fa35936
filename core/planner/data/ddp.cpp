#include "core/planner/data/ddp.h"

#include <algorithm>
#include <utility>

#include "core/planner/data/bucket_caps.h"

namespace lockstep {
namespace {

/// Largest flat buffer of the initial model broadcast (torch/distributed/utils.py:
/// _sync_module_states, 250 MiB).
constexpr std::int64_t kBroadcastBytes = 250LL * 1024 * 1024;

}  // namespace

Ddp::Ddp(const DataParallelInputs& inputs)
    : ReplicatedParameters(inputs),
      bucket_options_(ddp_bucket_options(options())),
      position_of_(weight_.size(), -1) {
  for (int position = 0; position < static_cast<int>(stage_.segments.size()); ++position) {
    for_each_parameter_of(position, [&](std::int32_t parameter) {
      position_of_[index(parameter)] = static_cast<std::int32_t>(ids_.size());
      ids_.push_back(parameter);
    });
  }
}

std::int64_t Ddp::pass_number(std::int32_t microbatch) const {
  return options().no_sync ? variant_ : std::int64_t{variant_} * context_.microbatches + microbatch;
}

int Ddp::variants() const {
  return ddp_variant_count(bucket_options_, options().no_sync ? 1 : context_.microbatches);
}

bool Ddp::reduces(const Pass& pass) const {
  return !options().no_sync || pass.last_backward;
}

// ---- construction ------------------------------------------------------------------------------

void Ddp::initialize(ProgramBuilder& b) {
  ReplicatedParameters::initialize(b);
  b.at(Phase::kInit);
  if (!options().ideal) {
    synchronize_model(b);
  }
  // Counting describes the steady step, so it starts with the steady buckets.
  assign_buckets(ddp_bucketing(bucket_options_, b.counting() ? 1000 : 0));
  allocate_buckets(b);
}

/// What the constructor does with init_sync: every rank has the same number and shapes of
/// parameters (checked), then rank 0's values.
void Ddp::synchronize_model(ProgramBuilder& b) {
  const std::uint8_t group = b.tables().communicator(kDataAxes);
  const auto describe = [&](std::int64_t elements) {
    const BufferId id = b.alloc(Category::kTemporary, DType::kInt64, elements);
    b.host(Work::kDescribeModel, Shape{{elements}}, {b.whole(id)});
    return id;
  };
  const BufferId count = describe(1);
  const BufferId counts = b.alloc(Category::kTemporary, DType::kInt64, context_.data_degree());
  b.collective(Collective::kAllGather,
               group,
               Reduction::kNone,
               1,
               b.whole(count),
               b.whole(counts),
               {.stream = Stream::kData});
  b.free(count);
  b.free(counts);
  std::int64_t metadata = 0;
  for (const std::int32_t parameter : ids_) {
    metadata += context_.graph->parameter(parameter).vector ? 2 : 4;  // sizes and strides
  }
  const BufferId shapes = describe(metadata);
  b.collective(Collective::kBroadcast,
               group,
               Reduction::kNone,
               metadata,
               b.whole(shapes),
               b.whole(shapes),
               {.stream = Stream::kData, .root = 0});
  b.free(shapes);
  std::vector<std::vector<View>> messages(1);
  std::vector<View> counters;
  std::int64_t bytes = 0;
  const auto add = [&](const View& view) {
    const std::int64_t more = view.elements * size_of(b.buffer(view.buffer).dtype);
    if (bytes > 0 && (bytes + more > kBroadcastBytes || messages.back().size() == 254)) {
      messages.emplace_back();
      bytes = 0;
    }
    messages.back().push_back(view);
    bytes += more;
  };
  if (b.counting()) {
    return;  // transient; its messages belong to init, not to the step that is summarised
  }
  for (const std::int32_t parameter : ids_) {
    add(b.whole(weight_[index(parameter)]));
  }
  for (std::size_t segment = 0; segment < buffers_.running.size(); ++segment) {
    if (buffers_.running[segment] != kNoBuffer) {
      add(b.whole(buffers_.running[segment]));
      counters.push_back(b.whole(buffers_.counters[segment]));
    }
  }
  messages.push_back(counters);
  broadcast_coalesced(b, messages);
}

/// Each message by way of a flat buffer, at most two in flight (comm.cpp: broadcast_coalesced).
void Ddp::broadcast_coalesced(ProgramBuilder& b, std::span<const std::vector<View>> messages) {
  std::vector<BufferId> flats;
  std::size_t arrived = 0;
  const auto finish_one = [&] {
    const View all = b.whole(flats[arrived]);
    b.compute(Work::kUnpack, Shape{{all.elements}}, Views(&all, 1), messages[arrived]);
    b.free(flats[arrived++]);
  };
  for (const std::vector<View>& parts : messages) {
    if (parts.empty()) {
      break;
    }
    std::int64_t elements = 0;
    for (const View& part : parts) {
      elements += part.elements;
    }
    flats.push_back(
        b.alloc(Category::kCommunication, b.buffer(parts.front().buffer).dtype, elements));
    const View all = b.whole(flats.back());
    b.compute(Work::kPack, Shape{{elements}}, parts, Views(&all, 1));
    b.collective(Collective::kBroadcast,
                 b.tables().communicator(kDataAxes),
                 Reduction::kNone,
                 elements,
                 all,
                 all,
                 {.stream = Stream::kData, .root = 0});
    if (flats.size() - arrived == 2) {
      finish_one();
    }
  }
  while (arrived < flats.size()) {
    finish_one();
  }
}

// ---- buckets -----------------------------------------------------------------------------------

void Ddp::assign_buckets(DdpBucketing bucketing) {
  std::vector<std::int64_t> bytes(ids_.size());
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    bytes[i] = elements(ids_[i]) * size_of(context_.gradient_dtype);
  }
  std::vector<std::int32_t> order;
  reverse_registration(static_cast<std::int32_t>(ids_.size()), order);
  BucketInput input;
  input.sizes = bytes;
  input.order = order;
  ddp_buckets(bucketing, bucket_options_, input, buckets_);
  bucket_of_.assign(ids_.size(), 0);
  offset_of_.assign(ids_.size(), 0);
  for (int k = 0; k < buckets_.count(); ++k) {
    std::int64_t offset = 0;
    for (const std::int32_t member : buckets_.members_of(k)) {
      bucket_of_[static_cast<std::size_t>(member)] = k;
      offset_of_[static_cast<std::size_t>(member)] = offset;
      offset += elements(ids_[static_cast<std::size_t>(member)]);
    }
  }
}

void Ddp::allocate_buckets(ProgramBuilder& b) {
  bucket_.clear();
  for (const Bucket& bucket : buckets_.buckets) {
    bucket_.push_back(b.alloc(Category::kCommunication,
                              context_.gradient_dtype,
                              bucket.size / size_of(context_.gradient_dtype),
                              {.lifetime = Lifetime::kPersistent}));
  }
}

/// Rank 0's ready order and bucket sizes become everybody's; then new buckets replace the old.
void Ddp::rebuild(ProgramBuilder& b) {
  const std::uint8_t group = b.tables().communicator(kDataAxes);
  std::vector<View> held;  // gradients of this step's first micro-batches, views of old buckets
  if (in_buckets()) {
    for (const std::int32_t parameter : ids_) {
      held.push_back(slot(b, parameter));
    }
  }
  const std::vector<BufferId> old = bucket_;
  assign_buckets(DdpBucketing::kRebuilt);
  for (const std::int64_t elements :
       {static_cast<std::int64_t>(ids_.size()) + 1, std::int64_t{buckets_.count()}}) {
    const BufferId numbers = b.alloc(Category::kTemporary, DType::kInt32, elements);
    b.host(Work::kDescribeModel, Shape{{elements}}, {b.whole(numbers)});
    b.collective(Collective::kBroadcast,
                 group,
                 Reduction::kNone,
                 elements,
                 b.whole(numbers),
                 b.whole(numbers),
                 {.stream = Stream::kData, .root = 0});
    b.free(numbers);
  }
  const auto free_old = [&] {
    for (const BufferId bucket : old) {
      b.free(bucket);
    }
  };
  if (held.empty()) {
    free_old();
  }
  allocate_buckets(b);
  for (std::size_t i = 0; i < held.size(); ++i) {
    const View moved = slot(b, ids_[i]);
    b.compute(Work::kPack, Shape{{moved.elements}}, Views(&held[i], 1), Views(&moved, 1));
  }
  if (!held.empty()) {
    free_old();
  }
}

void Ddp::broadcast_buffers(ProgramBuilder& b) {
  std::vector<View> messages[2];  // statistics, counts of batches
  for (std::size_t segment = 0; segment < buffers_.running.size(); ++segment) {
    if (buffers_.running[segment] != kNoBuffer) {
      messages[0].push_back(b.whole(buffers_.running[segment]));
      messages[1].push_back(b.whole(buffers_.counters[segment]));
    }
  }
  broadcast_coalesced(b, messages);
}

// ---- one step ----------------------------------------------------------------------------------

void Ddp::begin_step(ProgramBuilder&, int variant) {
  variant_ = variant;
  passes_ = 0;
}

void Ddp::begin_microbatch(ProgramBuilder& b, const Pass& pass) {
  b.at(Phase::kForward, kNoModule, pass.microbatch);
  const std::int64_t number = pass_number(pass.microbatch);
  const bool first_of_pass = !options().no_sync || pass.microbatch == 0;
  if (first_of_pass && !b.counting() && ddp_rebuilds_before(bucket_options_, number)) {
    rebuild(b);
  }
  // Buffers travel before a forward whose predecessor was synchronised.
  if (options().broadcast_buffers && first_of_pass) {
    broadcast_buffers(b);
  }
}

void Ddp::start_pass() {
  open_pass_ = true;
  next_ = 0;
  pending_.assign(static_cast<std::size_t>(buckets_.count()), 0);
  for (int k = 0; k < buckets_.count(); ++k) {
    pending_[static_cast<std::size_t>(k)] = buckets_.buckets[static_cast<std::size_t>(k)].count;
  }
}

void Ddp::gradient_ready(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) {
  // A tied weight is ready when its last user in backward, the embedding, has added its part.
  const bool waits_for_embedding = stored(parameter) != parameter;
  if (!reduces(pass) || waits_for_embedding) {
    return;
  }
  if (!open_pass_) {
    start_pass();
  }
  b.at_phase(Phase::kReduce);
  const View target = slot(b, parameter);
  Extras extras;
  extras.scalar = b.tables().factor(1, divisor());
  BufferId& gradient = gradient_[index(parameter)];
  if (in_buckets()) {
    // The gradient is there already, the last pass's mean (alike on all ranks) included.
    extras.flags = kInPlace;
    b.compute(Work::kScale, Shape{{target.elements}}, Views(&target, 1), Views(&target, 1), extras);
  } else {
    const View source = b.whole(gradient);
    b.compute(Work::kPack, Shape{{target.elements}}, Views(&source, 1), Views(&target, 1), extras);
  }
  if (options().gradient_as_bucket_view && !in_buckets()) {
    b.free(std::exchange(gradient, kNoBuffer));
  }
  --pending_[static_cast<std::size_t>(bucket_of_[position(parameter)])];
  launch_ready(b);
}

/// Later passes of a step add to what is in the bucket.
GradientTarget Ddp::gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) {
  return in_buckets() ? GradientTarget{slot(b, stored(parameter)), true}
                      : ReplicatedParameters::gradient(b, parameter, pass);
}

View Ddp::slot(ProgramBuilder& b, std::int32_t parameter) const {
  const std::size_t i = position(parameter);
  return ProgramBuilder::range(
      b.counting() ? bucket_.front() : bucket_[static_cast<std::size_t>(bucket_of_[i])],
      offset_of_[i],
      elements(parameter));
}

std::int64_t Ddp::divisor() const {
  return context_.training().loss_mean == LossMean::kGlobalTokens ? 1 : context_.data_degree();
}

void Ddp::launch_ready(ProgramBuilder& b) {
  if (b.counting()) {
    return;  // all at the end: launching changes no memory
  }
  while (next_ < buckets_.count() && pending_[static_cast<std::size_t>(next_)] == 0) {
    launch(b, next_++);
  }
}

void Ddp::launch(ProgramBuilder& b, int k) {
  const bool map_first = options().static_graph && variant_ == 0 && passes_ == 0 && k == 0;
  if (map_first) {
    reduce_used_map(b);
  }
  const View bucket = b.whole(bucket_[static_cast<std::size_t>(k)]);
  b.collective(Collective::kAllReduce,
               b.tables().communicator(kDataAxes),
               Reduction::kSum,
               bucket.elements,
               bucket,
               bucket,
               {.stream = Stream::kData});
}

void Ddp::reduce_used_map(ProgramBuilder& b) {
  const auto elements = static_cast<std::int64_t>(ids_.size());
  const BufferId map = b.alloc(Category::kTemporary, DType::kInt32, elements);
  b.compute(Work::kUsedMap, Shape{{elements}}, {}, {b.whole(map)});
  b.collective(Collective::kAllReduce,
               b.tables().communicator(kDataAxes),
               Reduction::kSum,
               elements,
               b.whole(map),
               b.whole(map),
               {.stream = Stream::kData});
  b.free(map);
}

/// End of a synchronised backward: wait for all buckets in order, copy back to the gradients.
void Ddp::finish_pass(ProgramBuilder& b) {
  b.at(Phase::kReduce);
  if (b.counting()) {
    for (int k = 0; k < buckets_.count(); ++k) {
      launch(b, k);
    }
  }
  if (options().find_unused_parameters && !options().static_graph) {
    reduce_used_map(b);
  }
  std::vector<View> parts;
  for (int k = 0; k < buckets_.count(); ++k) {
    if (options().gradient_as_bucket_view) {
      break;  // gradients are views of the buckets
    }
    parts.clear();
    const View bucket = b.whole(bucket_[static_cast<std::size_t>(k)]);
    for (const std::int32_t member : buckets_.members_of(k)) {
      const std::int32_t parameter = ids_[static_cast<std::size_t>(member)];
      parts.push_back(b.counting() ? ProgramBuilder::range(bucket.buffer, 0, elements(parameter))
                                   : b.whole(gradient_[index(parameter)]));
    }
    unpack_bucket(b, bucket, parts);
  }
  open_pass_ = false;
  ++passes_;
}

void Ddp::unpack_bucket(ProgramBuilder& b, const View& bucket, const std::vector<View>& parts) {
  // One operation copies at most 128 gradients back: operand counts are bytes.
  constexpr std::size_t kMost = 128;
  std::int64_t offset = 0;
  for (std::size_t first = 0; first < parts.size(); first += kMost) {
    const std::size_t count = std::min(kMost, parts.size() - first);
    std::int64_t elements = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      elements += parts[i].elements;
    }
    const View piece = ProgramBuilder::range(bucket.buffer, offset, elements);
    b.compute(
        Work::kUnpack, Shape{{elements}}, Views(&piece, 1), Views(parts.data() + first, count));
    offset += elements;
  }
}

void Ddp::end_microbatch(ProgramBuilder& b, const Pass& pass) {
  if (reduces(pass) && !pass.last_backward) {
    finish_pass(b);
  }
}

void Ddp::finish_gradients(ProgramBuilder& b) {
  finish_pass(b);
}

View Ddp::final_gradient(ProgramBuilder& b, std::int32_t parameter) {
  if (!options().gradient_as_bucket_view) {
    return ReplicatedParameters::final_gradient(b, parameter);
  }
  return slot(b, parameter);
}

}  // namespace lockstep
