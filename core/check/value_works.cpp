// Works of the value machine: those with a rule of value_rules.h, and those that feed it or hand
// numbers to the hooks. Moving and adding data is in value_pack.cpp.
#include <algorithm>

#include <fmt/format.h>

#include "core/check/value_exchange.h"
#include "core/check/value_machine.h"

namespace lockstep {
namespace {

using field::Number;

/// First of a work's outputs that are gradients of parameters (or sums), to which kAccumulate adds.
std::size_t first_accumulated(Work work) {
  return work == Work::kNormGrad || work == Work::kBnGradApply ? 1 : 0;
}

/// One past the last of them.
std::size_t end_accumulated(Work work, std::size_t outputs) {
  return work == Work::kLossFinish ? 1 : outputs;
}

bool is_gradient(Work work) {
  switch (work) {
    case Work::kEmbeddingGrad:
    case Work::kPositionGrad:
    case Work::kMatmulGradInput:
    case Work::kMatmulGradWeight:
    case Work::kBiasGrad:
    case Work::kNormGrad:
    case Work::kRopeGrad:
    case Work::kAttentionGrad:
    case Work::kFlashAttentionGrad:
    case Work::kGeluGrad:
    case Work::kReluGrad:
    case Work::kSwiGluGrad:
    case Work::kDropoutGrad:
    case Work::kBnGradSums:
    case Work::kBnGradApply:
    case Work::kRouteGrad:
    case Work::kDispatchGrad:
    case Work::kCombineGrad:
      return true;
    default:
      return false;
  }
}

Number batch_number(int iteration, int data, int microbatch, bool labels) {
  return field::Hash(0x62617463ULL)
      .add(static_cast<Number>(iteration) + 16)
      .add(static_cast<Number>(data))
      .add(static_cast<Number>(microbatch) + 16)
      .add(labels ? 1 : 0)
      .number();
}

}  // namespace

Number loss_scale_number(Number state) {
  return field::Hash(0x7363616cULL).add(state).number();
}

Number first_statistics_number(std::uint32_t buffer) {
  return field::Hash(0x72756e6eULL).add(buffer).number();
}

Number token_count_of_batch(int iteration, int data, int microbatch) {
  return token_count_number(batch_number(iteration, data, microbatch, true));
}

void ValueMachine::guard(const ValueSite& at) {
  if (at.op->guard != kNoBuffer) {
    const View flag{at.op->guard, Axis::kNone, 0, 1, 0};
    hooks_.guarded(at, number(at, flag));
  }
}

// ---- operands ----------------------------------------------------------------------------------

ValueTensor ValueMachine::tensor(const ValueSite& at, const View& view) {
  rank_of(at).memory.read(view, slab_);
  if (slab_.size() == 1 && slab_[0].elements == view.elements) {
    return {slab_[0].symbol, view.elements};
  }
  std::int64_t covered = 0;
  for (const ValuePiece& piece : slab_) {
    covered += piece.elements;
  }
  const bool hole = covered < view.elements;
  hooks_.problem(at,
                 fmt::format("reads {} in buffer {}: {} of {} elements initialised, in {} pieces",
                             hole ? "uninitialised memory" : "a mixture of tensors",
                             view.buffer,
                             covered,
                             view.elements,
                             slab_.size()));
  return {{digest(slab_), 0, 0, 1}, view.elements};
}

field::Number ValueMachine::number(const ValueSite& at, const View& view) {
  return tensor(at, {view.buffer, view.axis, view.offset, 1, view.stride}).symbol.number;
}

void ValueMachine::write(const ValueSite& at, const View& view, const ValueSymbol& symbol) {
  if (rank_of(at).memory.write(view, symbol)) {
    use_of(at) = ValueUse::kUseful;
  }
}

void ValueMachine::write(const ValueSite& at, const View& view, const ValueSlab& slab) {
  if (rank_of(at).memory.write(view, slab)) {
    use_of(at) = ValueUse::kUseful;
  }
}

void ValueMachine::accumulate(const ValueSite& at, const View& view, const ValueSymbol& symbol) {
  rank_of(at).memory.read(view, slab_);
  part_.assign(1, {0, view.elements, symbol});
  const ValueSlab* both[] = {&slab_, &part_};
  ValueSlab sum;
  sum_slabs(both, sum);
  write(at, view, sum);
}

field::Number ValueMachine::constant_factor(const Operation& op) const {
  if (op.scalar == kNoScalar) {
    return 1;
  }
  const Scalar& scalar = plan_.scalars[op.scalar];
  return scalar.source == Scalar::Source::kConstant
             ? field::fraction(scalar.numerator, scalar.denominator)
             : 1;
}

void ValueMachine::compare_with_forward(const ValueSite& at, std::size_t output, Number result) {
  Rank& rank = rank_of(at);
  const Operation& op = *at.op;
  if (!rank.recomputes || (op.phase != Phase::kForward && op.phase != Phase::kRecompute)) {
    return;
  }
  const std::uint64_t place = (static_cast<std::uint64_t>(op.module) << 32U) |
                              (static_cast<std::uint64_t>(op.microbatch + 1) << 16U) |
                              (static_cast<std::uint64_t>(op.work) << 8U) | output;
  if (op.phase == Phase::kForward) {
    rank.forward[place] = result;
    return;
  }
  const auto found = rank.forward.find(place);
  if (found == rank.forward.end() || found->second != result) {
    hooks_.problem(at, "recomputation gives another result than forward");
  }
}

/// Tells the hooks what a work gave, gradients in units of the loss.
void ValueMachine::trace(const ValueSite& at, std::size_t output) {
  const bool is_statistic = at.op->work == Work::kBnApply && output > 0;
  if (!hooks_.traces() || is_statistic) {
    return;
  }
  Number result = tensors_out_[output].symbol.number;
  const bool scaled = is_gradient(at.op->work) || at.op->work == Work::kLossFinish;
  if (scaled) {
    result = field::multiply(result, field::inverse(loss_factor_));
  }
  const Number place = field::Hash(static_cast<Number>(rank_of(at).data) + 1)
                           .add(static_cast<Number>(microbatch(at)))
                           .add(iteration_ < 0 ? 0U : 1U)
                           .number();
  hooks_.traced(at, place, result);
}

// ---- works with a rule -------------------------------------------------------------------------

void ValueMachine::work(const ValueSite& at) {
  if (has_value_rule(at.op->work)) {
    return rule(at);
  }
  switch (at.op->work) {
    case Work::kAdd:
      return add(at);
    case Work::kScale:
      return scale(at);
    case Work::kZero:
      for (const View& view : outputs(at)) {
        write(at, view, ValueSymbol{});
      }
      return;
    case Work::kCast:
    case Work::kPack:
      return pack(at);
    case Work::kUnpack:
      return unpack(at);
    case Work::kInitialize:
      return initialize(at);
    case Work::kLoadBatch:
      return load_batch(at);
    case Work::kCountTokens:
      return count_tokens(at);
    case Work::kUnscaleAndCheck:
      return unscale_and_check(at);
    case Work::kSumSquares:
      return sum_squares(at);
    case Work::kClipCoefficient:
      return clip_coefficient(at);
    case Work::kSgd:
    case Work::kMomentum:
    case Work::kAdamW:
    case Work::kAdamW8bit:
      return optimizer(at);
    default:
      return bookkeeping(at);
  }
}

void ValueMachine::bookkeeping(const ValueSite& at) {
  switch (at.op->work) {
    case Work::kScalerUpdate: {
      const Number flag = number(at, inputs(at).front());
      hooks_.guarded(at, flag);
      const View& state = outputs(at).front();
      const Number before = number(at, state);
      write(at, state, {field::Hash(before).number(), 0, 0, 1});
      return;
    }
    case Work::kUsedMap:
    case Work::kDescribeModel:
      for (const View& view : outputs(at)) {
        const Number own = field::Hash(static_cast<Number>(at.op->work))
                               .add(static_cast<Number>(at.rank))
                               .add(at.index)
                               .number();
        write(at, view, {own, 0, 0, 1});
        beliefs_.emplace(own, Belief{at, rank_count() == 1, false});
      }
      return;
    case Work::kReadScalar:
      hooks_.host_reads(at, number(at, inputs(at).front()));
      return;
    case Work::kWriteShard:
      for (const View& view : inputs(at)) {
        rank_of(at).memory.read(view, slab_);
        hooks_.shard_written(at, slab_);
      }
      return;
    case Work::kCommit: {
      // A barrier of all ranks has counted them in what the commit reads.
      const auto ranks = static_cast<Number>(plan_.mesh.world_size());
      if (ranks > 1 && (inputs(at).empty() || number(at, inputs(at).front()) != ranks)) {
        hooks_.problem(at, "commits before every rank has written its shards");
      }
      return;
    }
    default:
      return;
  }
}

/// A loss may also read the loss scale and the count of tokens, after its five operands.
void ValueMachine::read_loss_factors(const ValueSite& at, ValueCall& call, Number& scale) {
  const std::span<const View> views = inputs(at);
  call.by_tokens = at.op->scalar != kNoScalar &&
                   plan_.scalars[at.op->scalar].meaning == Scalar::Meaning::kInverseTokens;
  std::size_t last = views.size();
  if (call.by_tokens && last > 5) {
    call.factor = field::inverse(number(at, views[--last]));
  }
  if (last > 5) {
    scale = loss_scale_number(number(at, views[5]));
  }
}

/// The operands as tensors; a loss has five and then its factors.
void ValueMachine::read_operands(const ValueSite& at) {
  const std::span<const View> from = inputs(at);
  const std::size_t count =
      at.op->work == Work::kLossFinish ? std::min<std::size_t>(from.size(), 5) : from.size();
  tensors_in_.clear();
  for (std::size_t i = 0; i < count; ++i) {
    tensors_in_.push_back(tensor(at, from[i]));
  }
  tensors_out_.clear();
  for (const View& view : outputs(at)) {
    tensors_out_.push_back({{}, view.elements});
  }
}

void ValueMachine::write_results(const ValueSite& at) {
  const std::span<const View> to = outputs(at);
  const Work kind = at.op->work;
  for (std::size_t k = 0; k < to.size(); ++k) {
    compare_with_forward(at, k, tensors_out_[k].symbol.number);
    trace(at, k);
    const bool adds = at.op->has(kAccumulate) && k >= first_accumulated(kind) &&
                      k < end_accumulated(kind, to.size());
    if (adds) {
      accumulate(at, to[k], tensors_out_[k].symbol);
    } else {
      write(at, to[k], tensors_out_[k].symbol);
    }
  }
}

void ValueMachine::rule(const ValueSite& at) {
  const Rank& rank = rank_of(at);
  const Work kind = at.op->work;
  Operation op = *at.op;
  op.microbatch = static_cast<std::int16_t>(microbatch(at));
  ValueCall call;
  call.graph = plan_.graph.get();
  call.op = &op;
  call.data = rank.data;
  call.tensor_index = rank.tensor_index;
  call.tensor_degree = plan_.mesh.size(Axis::kTensor);
  call.tokens = tokens_;
  call.factor = constant_factor(op);
  Number scale = 1;
  if (kind == Work::kLossFinish) {
    read_loss_factors(at, call, scale);
    loss_factor_ = field::multiply(call.factor, scale);
  }
  read_operands(at);
  call.inputs = tensors_in_;
  call.outputs = tensors_out_;
  std::string wrong = apply_value_rule(call);
  if (!wrong.empty()) {
    hooks_.problem(at, std::move(wrong));
  }
  if (kind == Work::kLossFinish && tensors_out_.size() > 1) {
    Number& dlogits = tensors_out_[1].symbol.number;
    dlogits = field::multiply(dlogits, scale);
  }
  if (kind == Work::kBnApply) {
    tell_statistics(at);
  }
  write_results(at);
  const bool meets_copies = options_.copies > 1 && kind == Work::kBnSums &&
                            plan_.graph->model.mlp_norm == MlpNormKind::kSyncBatchNorm;
  if (meets_copies) {
    join(plan_.communicators.size(), at, outputs(at).front());
  }
}

void ValueMachine::tell_statistics(const ValueSite& at) {
  const bool evaluates = at.op->phase == Phase::kEvaluate;
  const bool updates = at.op->phase == Phase::kForward && tensors_out_.size() > 1;
  if (evaluates || updates) {
    const Number before = tensors_in_.back().symbol.number;
    hooks_.statistics(at,
                      rank_of(at).memory.root_of(inputs(at).back()),
                      before,
                      updates ? tensors_out_[1].symbol.number : before);
  }
}

// ---- sources -----------------------------------------------------------------------------------

/// Tokens or x on the first stage, labels on the last one, both where they are the same rank. A
/// process that has all ranks loads the samples of all of them.
void ValueMachine::load_batch(const ValueSite& at) {
  const std::span<const View> to = outputs(at);
  const bool knows_module = at.op->module != kNoModule;
  const bool labels_only = knows_module
                               ? plan_.graph->module(at.op->module).kind == ModuleKind::kLoss
                               : rank_of(at).pipeline > 0;
  const int shares = plan_.host_shared ? plan_.mesh.count(kDataAxes) : 1;
  for (std::size_t k = 0; k < to.size(); ++k) {
    const bool labels = k > 0 || (to.size() == 1 && labels_only);
    slab_.clear();
    const std::int64_t elements = to[k].elements / shares;
    for (int i = 0; i < shares; ++i) {
      const int data = rank_of(at).data + i;
      append(slab_,
             {i * elements,
              elements,
              {batch_number(iteration_, data, microbatch(at), labels), 0, 0, 1}});
    }
    write(at, to[k], slab_);
  }
}

/// Tokens of all micro-batches of the step on this data-parallel coordinate.
void ValueMachine::count_tokens(const ValueSite& at) {
  Number sum = 0;
  const int first = microbatch_ >= 0 ? microbatch_ : 0;
  const int end = microbatch_ >= 0 ? microbatch_ + 1 : plan_.microbatches;
  for (int m = first; m < end; ++m) {
    sum = field::add(sum, token_count_of_batch(iteration_, rank_of(at).data, m));
  }
  if (at.op->has(kAccumulate)) {
    accumulate(at, outputs(at).front(), {sum, 0, 0, 1});
  } else {
    write(at, outputs(at).front(), {sum, 0, 0, 1});
  }
}

}  // namespace lockstep
