#include "core/planner/data/single_process.h"

#include <utility>

namespace lockstep {
namespace {

constexpr std::int64_t kMessageBytes = 10LL * 1024 * 1024;
constexpr std::size_t kMostOperands = 128;
constexpr std::int16_t kRoot = 0;

}  // namespace

SingleProcess::SingleProcess(const DataParallelInputs& inputs)
    : ReplicatedParameters(inputs),
      coordinate_(inputs.data_coordinate),
      total_(weight_.size(), kNoBuffer) {
  for (int position = 0; position < static_cast<int>(stage_.segments.size()); ++position) {
    for_each_parameter_of(position, [&](std::int32_t parameter) { ids_.push_back(parameter); });
  }
}

void SingleProcess::initialize(ProgramBuilder& b) {
  if (in_charge()) {
    ReplicatedParameters::initialize(b);
  }
}

void SingleProcess::create_masters(ProgramBuilder& b) {
  if (in_charge()) {
    ReplicatedParameters::create_masters(b);
  }
}

void SingleProcess::allocate_states(ProgramBuilder& b) {
  if (in_charge()) {
    ReplicatedParameters::allocate_states(b);
  }
}

/// Calls message(first, count, elements) for runs of parameters that travel together.
template <typename Message>
void SingleProcess::for_each_message(std::int64_t element_bytes, Message&& message) const {
  std::size_t first = 0;
  while (first < ids_.size()) {
    std::int64_t count_elements = elements(ids_[first]);
    std::size_t last = first + 1;
    while (last < ids_.size() && last - first < kMostOperands &&
           (count_elements + elements(ids_[last])) * element_bytes <= kMessageBytes) {
      count_elements += elements(ids_[last++]);
    }
    message(first, last - first, count_elements);
    first = last;
  }
}

/// Device 0's parameters become everybody's, anew in every forward.
void SingleProcess::replicate(ProgramBuilder& b) {
  for_each_message(size_of(context_.parameter_dtype),
                   [&](std::size_t first, std::size_t count, std::int64_t message_elements) {
                     std::vector<View> parts;
                     for (std::size_t i = first; i < first + count; ++i) {
                       const std::int32_t parameter = ids_[i];
                       if (!in_charge()) {
                         weight_[index(parameter)] = b.alloc(Category::kGatheredParameter,
                                                             context_.parameter_dtype,
                                                             elements(parameter),
                                                             {.parameter = parameter});
                       }
                       parts.push_back(b.whole(weight_[index(parameter)]));
                     }
                     const BufferId flat = b.alloc(
                         Category::kCommunication, context_.parameter_dtype, message_elements);
                     const View all = b.whole(flat);
                     if (in_charge()) {
                       b.compute(Work::kPack, Shape{{message_elements}}, parts, Views(&all, 1));
                     }
                     b.collective(Collective::kBroadcast,
                                  group(b),
                                  Reduction::kNone,
                                  message_elements,
                                  in_charge() ? all : View{},
                                  all,
                                  {.stream = Stream::kData, .root = kRoot});
                     if (!in_charge()) {
                       b.compute(Work::kUnpack, Shape{{message_elements}}, Views(&all, 1), parts);
                     }
                     b.free(flat);
                   });
}

void SingleProcess::broadcast_statistics(ProgramBuilder& b) {
  for (const std::vector<BufferId>* buffers : {&buffers_.running, &buffers_.counters}) {
    for (const BufferId buffer : *buffers) {
      if (buffer != kNoBuffer) {
        const View all = b.whole(buffer);
        b.collective(Collective::kBroadcast,
                     group(b),
                     Reduction::kNone,
                     all.elements,
                     all,
                     all,
                     {.stream = Stream::kData, .root = kRoot});
      }
    }
  }
}

void SingleProcess::begin_microbatch(ProgramBuilder& b, const Pass& pass) {
  b.at(b.phase(), kNoModule, pass.microbatch);
  free_replica(b);  // of an evaluation pass, which has no backward to end it
}

/// The whole batch is read into device 0 and cut along dimension 0; then the module is replicated.
void SingleProcess::load_batch(ProgramBuilder& b, const Shape& shape, Views outputs) {
  std::vector<View> whole;
  if (in_charge()) {
    for (const View& output : outputs) {
      const BufferId id = b.alloc(Category::kInput,
                                  b.buffer(output.buffer).dtype,
                                  output.elements * context_.data_degree());
      whole.push_back(b.whole(id));
    }
    Shape all = shape;
    all.extent[0] *= context_.data_degree();
    b.host(Work::kLoadBatch, all, {}, whole);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    b.collective(Collective::kScatter,
                 group(b),
                 Reduction::kNone,
                 outputs[i].elements,
                 in_charge() ? whole[i] : View{},
                 outputs[i],
                 {.stream = Stream::kData, .root = kRoot});
  }
  for (const View& each : whole) {
    b.free(each.buffer);
  }
  b.at(b.phase(), kNoModule, b.microbatch());
  replicate(b);
  broadcast_statistics(b);
}

/// Device 0 gathers the model's outputs; only their memory and their traffic matter here.
void SingleProcess::after_loss(ProgramBuilder& b, const View& logits) {
  const DType dtype = b.buffer(logits.buffer).dtype;
  View target{};
  if (outputs_ != kNoBuffer) {
    b.free(std::exchange(outputs_, kNoBuffer));
  }
  if (in_charge()) {
    target = b.whole(b.alloc(Category::kLogits, dtype, logits.elements * context_.data_degree()));
  }
  b.collective(Collective::kGather,
               group(b),
               Reduction::kNone,
               logits.elements,
               logits,
               target,
               {.stream = Stream::kData, .root = kRoot});
  if (in_charge()) {
    outputs_ = target.buffer;
  }
}

void SingleProcess::free_replica(ProgramBuilder& b) {
  if (!in_charge()) {
    free_casts(b);
  }
  for (const std::int32_t parameter : ids_) {
    if (!in_charge() && weight_[index(parameter)] != kNoBuffer) {
      b.free(std::exchange(weight_[index(parameter)], kNoBuffer));
    }
  }
}

/// Gradients of all devices are summed on device 0 and added to what it has.
void SingleProcess::end_microbatch(ProgramBuilder& b, const Pass& pass) {
  b.at(Phase::kReduce, kNoModule, pass.microbatch);
  for_each_message(size_of(context_.gradient_dtype),
                   [&](std::size_t first, std::size_t count, std::int64_t message_elements) {
                     std::vector<View> parts;
                     for (std::size_t i = first; i < first + count; ++i) {
                       parts.push_back(b.whole(gradient_[index(ids_[i])]));
                     }
                     const BufferId flat = b.alloc(
                         Category::kCommunication, context_.gradient_dtype, message_elements);
                     const View all = b.whole(flat);
                     b.compute(Work::kPack, Shape{{message_elements}}, parts, Views(&all, 1));
                     b.collective(Collective::kReduce,
                                  group(b),
                                  Reduction::kSum,
                                  message_elements,
                                  all,
                                  all,
                                  {.stream = Stream::kData, .root = kRoot});
                     if (in_charge()) {
                       b.compute(Work::kUnpack, Shape{{message_elements}}, Views(&all, 1), parts);
                     }
                     b.free(flat);
                   });
  for (const std::int32_t parameter : ids_) {
    const BufferId gradient = std::exchange(gradient_[index(parameter)], kNoBuffer);
    BufferId& sum = total_[index(parameter)];
    if (in_charge() && sum == kNoBuffer) {
      sum = gradient;
      continue;
    }
    if (in_charge()) {
      b.compute(Work::kAdd,
                Shape{{elements(parameter)}},
                {b.whole(sum), b.whole(gradient)},
                {b.whole(sum)},
                {.flags = kInPlace});
    }
    b.free(gradient);
  }
  if (outputs_ != kNoBuffer) {
    b.free(std::exchange(outputs_, kNoBuffer));
  }
  free_replica(b);
}

/// One process has one loss scale: what device 0 found holds for all.
void SingleProcess::share_overflow(ProgramBuilder& b, const View& flag) {
  b.collective(Collective::kBroadcast,
               b.tables().communicator(kDataAxes, 0, true),
               Reduction::kNone,
               1,
               flag,
               flag,
               {.stream = Stream::kData, .flags = kControl, .root = kRoot});
}

void SingleProcess::report_loss(ProgramBuilder& b, const View& loss) {
  b.collective(Collective::kReduce,
               b.tables().communicator(kDataAxes, 0, true),
               Reduction::kSum,
               1,
               loss,
               loss,
               {.stream = Stream::kData, .flags = kControl, .root = kRoot});
  if (in_charge()) {
    b.host(Work::kReadScalar, Shape{{1}}, Views(&loss, 1), {}, {.flags = kHostSync});
  }
}

void SingleProcess::for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) {
  if (!in_charge()) {
    return;
  }
  gradient_.swap(total_);
  ReplicatedParameters::for_each_owned(b, visit);
  gradient_.swap(total_);
}

void SingleProcess::finish_step(ProgramBuilder& b) {
  if (outputs_ != kNoBuffer) {
    b.free(std::exchange(outputs_, kNoBuffer));
  }
  free_replica(b);
  free_casts(b);
  for (const std::int32_t parameter : ids_) {
    if (total_[index(parameter)] != kNoBuffer) {
      b.free(std::exchange(total_[index(parameter)], kNoBuffer));
    }
  }
}

void SingleProcess::save(ProgramBuilder& b) {
  if (in_charge()) {
    ReplicatedParameters::save(b);
  }
}

}  // namespace lockstep
