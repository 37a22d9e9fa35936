#include "visualizer/models/shards.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/memory_timeline.h"
#include "core/model_graph.h"
#include "core/time_split.h"
#include "core/traffic.h"
#include "visualizer/models/gradient_flow.h"
#include "visualizer/models/plan_names.h"

namespace lockstep::view {

std::string_view name_of(ShardStage stage) {
  static constexpr std::string_view kNames[] = {
      "sharded", "gathering", "gathered", "used", "gradients whole", "reducing", "reduced"};
  return kNames[static_cast<std::size_t>(stage)];
}

/// Follows a program and writes down what happens to each unit.
class ShardReader {
 public:
  ShardReader(const TraceIndex& index, std::int32_t track, Shards& shards)
      : index_(index),
        track_(track),
        shards_(shards),
        program_(*index.program(track).program),
        buffers_(index.plan().buffers[static_cast<std::size_t>(index.track(track).class_index)]),
        unit_of_parameter_(index.plan().graph->parameters.size(), kNoUnit),
        now_(index.step().begin) {
    for (const MemorySample& sample : memory_timeline(index, track)) {
      if (sample.operation != kNoSpan) {
        change_times_[sample.operation] = sample.time;
      }
    }
  }

  void read() {
    find_units();
    for (std::uint32_t i = 0; i < program_.operations.size(); ++i) {
      pass(i, program_.operations[i]);
    }
    for (std::size_t unit = 0; unit < progress_.size(); ++unit) {
      end_gathered(unit, index_.step().end);
      end_reduced(unit, index_.step().end);
    }
    for (ShardUnit& unit : shards_.units_) {
      tidy(unit.parameters);
      tidy(unit.gradients);
    }
    find_peak_holders();
    add_exposed();
  }

 private:
  static constexpr std::int32_t kNoUnit = -1;

  /// What is under way for a unit.
  struct Progress {
    std::uint32_t gather = kNoSpan;    ///< the latest all-gather
    std::uint32_t reduce = kNoSpan;    ///< the latest reduction
    Nanoseconds whole_since = -1;      ///< gathered; -1: not
    Nanoseconds gradients_since = -1;  ///< the first whole gradient; -1: none
    Nanoseconds reduced_since = -1;
    std::int32_t whole_parameters = 0;  ///< how many are there
    ShardInterval use;                  ///< kSharded: not used since it was gathered
  };

  Progress& progress(std::int32_t unit) { return progress_[static_cast<std::size_t>(unit)]; }
  ShardUnit& unit_at(std::int32_t unit) { return shards_.units_[static_cast<std::size_t>(unit)]; }

  /// A unit is what one layout's copy-out makes whole.
  void find_units() {
    for (const Operation& op : program_.operations) {
      if (op.work != Work::kUnpack || op.layout == kNoLayout || op.outputs == 0 ||
          buffers_[program_.outputs_of(op).front().buffer].category !=
              Category::kGatheredParameter ||
          unit_of_layout_.count(op.layout) > 0) {
        continue;
      }
      const auto number = static_cast<std::int32_t>(shards_.units_.size());
      unit_of_layout_[op.layout] = number;
      const Layout& layout = index_.plan().layouts[op.layout];
      ShardUnit& unit = shards_.units_.emplace_back();
      unit.name = layout_name(*index_.plan().graph, layout);
      unit.shards = layout.coordinates;
      for (const LayoutEntry& entry : layout.entries) {
        unit.members.push_back(entry.parameter);
        unit_of_parameter_[static_cast<std::size_t>(entry.parameter)] = number;
      }
      const std::int64_t size = size_of(buffers_[program_.inputs_of(op).front().buffer].dtype);
      unit.gathered_bytes = layout.padded_elements() * size;
      unit.shard_bytes = layout.elements_per_coordinate * size;
      progress_.emplace_back();
    }
  }

  /// The unit that a buffer belongs to, or kNoUnit.
  std::int32_t unit_of(const Buffer& buffer) const {
    if (buffer.parameter >= 0) {
      return unit_of_parameter_[static_cast<std::size_t>(buffer.parameter)];
    }
    const auto found = unit_of_layout_.find(buffer.layout);
    return found == unit_of_layout_.end() ? kNoUnit : found->second;
  }
  bool holds_whole_parameter(const Buffer& buffer) const {
    return buffer.category == Category::kGatheredParameter && buffer.parameter >= 0;
  }
  bool holds_whole_gradient(const Buffer& buffer) const {
    return buffer.category == Category::kGradient && buffer.parameter >= 0;
  }
  bool holds_reduced_gradient(const Buffer& buffer) const {
    return buffer.category == Category::kGradient && buffer.parameter < 0;
  }
  SpanTimes times(std::uint32_t operation) const { return index_.times({track_, operation}); }

  void pass(std::uint32_t i, const Operation& op) {
    if (op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree) {
      pass_buffer(i, op);
    } else if (op.kind == OperationKind::kCollective && !op.has(kControl)) {
      pass_collective(i, op);
    } else if (op.work == Work::kUnpack && op.layout != kNoLayout) {
      pass_copy_out(i, op);
    } else if (op.kind == OperationKind::kCompute) {
      pass_use(i, op);
    }
  }

  void pass_buffer(std::uint32_t i, const Operation& op) {
    const Buffer& buffer = buffers_[op.buffer];
    const std::int32_t unit = unit_of(buffer);
    if (unit == kNoUnit) {
      return;
    }
    const auto changed = change_times_.find(i);
    now_ = changed == change_times_.end() ? now_ : changed->second;
    Progress& it = progress(unit);
    const bool freed = op.kind == OperationKind::kFree;
    if (holds_whole_parameter(buffer)) {
      it.whole_parameters += freed ? -1 : 1;
      if (freed && it.whole_parameters == 0) {
        end_gathered(static_cast<std::size_t>(unit), now_);
      }
    } else if (holds_whole_gradient(buffer) && !freed && it.gradients_since < 0) {
      it.gradients_since = now_;
    } else if (holds_reduced_gradient(buffer) && freed) {
      end_reduced(static_cast<std::size_t>(unit), now_);
    }
  }

  void pass_collective(std::uint32_t i, const Operation& op) {
    const View view =
        op.outputs > 0 ? program_.outputs_of(op).front() : program_.inputs_of(op).front();
    const std::int32_t unit = unit_of(buffers_[view.buffer]);
    if (unit == kNoUnit) {
      return;
    }
    const bool gathers = op.collective == Collective::kAllGather;
    const std::int64_t members = group_size(index_.plan().mesh, index_.communicator(op));
    ShardTraffic& traffic = gathers ? shards_.gathers_ : shards_.reductions_;
    ++traffic.messages;
    traffic.tensor_bytes += lockstep::tensor_bytes(op, members);
    traffic.sent_bytes += mean_sent_bytes(op, members);
    (gathers ? gather_operations_ : reduce_operations_).push_back(i);
    if (gathers) {
      progress(unit).gather = i;
    } else {
      pass_reduction(i, op, unit);
    }
  }

  /// A second reduction of the same gradient, between replicas, goes on with the first.
  void pass_reduction(std::uint32_t i, const Operation& op, std::int32_t unit) {
    Progress& it = progress(unit);
    const SpanTimes at = times(i);
    std::vector<ShardInterval>& row = unit_at(unit).gradients;
    if (it.gradients_since >= 0) {
      end_reduced(static_cast<std::size_t>(unit), it.gradients_since);
      add(row, {it.gradients_since, at.started, ShardStage::kFull, op, i});
      it.gradients_since = -1;
    }
    add(row, {at.started, at.ended, ShardStage::kReducing, op, i});
    it.reduce = i;
    it.reduced_since = at.ended;
  }

  void pass_copy_out(std::uint32_t i, const Operation& op) {
    const Buffer& target = buffers_[program_.outputs_of(op).front().buffer];
    const std::int32_t unit = unit_of(target);
    if (unit == kNoUnit || !holds_whole_parameter(target)) {
      return;
    }
    Progress& it = progress(unit);
    const Nanoseconds whole = times(i).ended;
    if (it.gather != kNoSpan) {
      const SpanTimes gather = times(it.gather);
      add(unit_at(unit).parameters,
          {gather.arrived, std::max(gather.ended, whole), ShardStage::kGathering, op, it.gather});
      it.gather = kNoSpan;
    }
    it.whole_since = std::max(it.whole_since, whole);
  }

  /// Uses of one pass are one interval.
  void pass_use(std::uint32_t i, const Operation& op) {
    for (const View& view : program_.inputs_of(op)) {
      const Buffer& buffer = buffers_[view.buffer];
      const std::int32_t unit = holds_whole_parameter(buffer) ? unit_of(buffer) : kNoUnit;
      if (unit == kNoUnit || progress(unit).whole_since < 0) {
        continue;
      }
      Progress& it = progress(unit);
      const SpanTimes at = times(i);
      const bool goes_on = it.use.stage == ShardStage::kUsed &&
                           it.use.microbatch == op.microbatch &&
                           is_backward(it.use.phase) == is_backward(op.phase);
      if (goes_on) {
        it.use.end = std::max(it.use.end, at.ended);
        continue;
      }
      end_use(unit);
      it.use = {at.started, at.ended, ShardStage::kUsed, op.phase, op.microbatch, kNoSpan};
    }
  }

  static bool is_backward(Phase phase) {
    return phase == Phase::kBackward || phase == Phase::kBackwardInput ||
           phase == Phase::kBackwardWeight || phase == Phase::kRecompute;
  }

  void end_use(std::int32_t unit) {
    Progress& it = progress(unit);
    if (it.use.stage != ShardStage::kUsed) {
      return;
    }
    std::vector<ShardInterval>& row = unit_at(unit).parameters;
    ShardInterval idle = it.use;
    idle.begin = it.whole_since;
    idle.end = it.use.begin;
    idle.stage = ShardStage::kGathered;
    if (idle.end > idle.begin) {
      row.push_back(idle);
    }
    row.push_back(it.use);
    it.whole_since = std::max(it.whole_since, it.use.end);
    it.use = ShardInterval{};
  }

  void end_gathered(std::size_t unit, Nanoseconds time) {
    end_use(static_cast<std::int32_t>(unit));
    Progress& it = progress_[unit];
    if (it.whole_since >= 0 && time > it.whole_since) {
      ShardInterval rest{it.whole_since, time, ShardStage::kGathered, Phase::kForward, -1, kNoSpan};
      if (!shards_.units_[unit].parameters.empty()) {
        rest.phase = shards_.units_[unit].parameters.back().phase;
        rest.microbatch = shards_.units_[unit].parameters.back().microbatch;
      }
      shards_.units_[unit].parameters.push_back(rest);
    }
    it.whole_since = -1;
  }

  void end_reduced(std::size_t unit, Nanoseconds time) {
    Progress& it = progress_[unit];
    if (it.reduced_since >= 0 && time > it.reduced_since) {
      const Operation& op = program_.operations[it.reduce];
      add(shards_.units_[unit].gradients,
          {it.reduced_since, time, ShardStage::kReduced, op, it.reduce});
    }
    it.reduced_since = -1;
  }

  struct NewInterval {
    Nanoseconds begin;
    Nanoseconds end;
    ShardStage stage;
    const Operation& of;
    std::uint32_t operation;
  };
  static void add(std::vector<ShardInterval>& row, const NewInterval& it) {
    if (it.end > it.begin) {
      row.push_back({it.begin, it.end, it.stage, it.of.phase, it.of.microbatch, it.operation});
    }
  }

  /// In order and apart: a later interval ends the one before it.
  static void tidy(std::vector<ShardInterval>& row) {
    std::stable_sort(row.begin(), row.end(), [](const ShardInterval& a, const ShardInterval& b) {
      return a.begin < b.begin;
    });
    for (std::size_t i = 0; i + 1 < row.size(); ++i) {
      row[i].end = std::min(row[i].end, row[i + 1].begin);
    }
    row.erase(
        std::remove_if(
            row.begin(), row.end(), [](const ShardInterval& it) { return it.end <= it.begin; }),
        row.end());
  }

  /// What is alive at the highest moment of the step (core/memory_timeline.h).
  void find_peak_holders() {
    const MemoryMoment peak =
        highest_memory(index_.plan(), index_.track(track_).class_index, index_.step().section);
    std::vector<PeakHolder> holders(shards_.units_.size());
    for (std::uint32_t i = 0; i < peak.position; ++i) {
      const Operation& op = program_.operations[i];
      const bool alloc = op.kind == OperationKind::kAlloc;
      if (!alloc && op.kind != OperationKind::kFree) {
        continue;
      }
      const Buffer& buffer = buffers_[op.buffer];
      const std::int32_t unit = unit_of(buffer);
      if (unit == kNoUnit || buffer.storage != Storage::kDevice) {
        continue;
      }
      PeakHolder& holder = holders[static_cast<std::size_t>(unit)];
      const std::int64_t change = alloc ? buffer.bytes() : -buffer.bytes();
      if (buffer.category == Category::kGatheredParameter) {
        holder.parameter_bytes += change;
      } else if (buffer.category == Category::kGradient) {
        holder.gradient_bytes += change;
      } else if (buffer.category == Category::kCommunication) {
        holder.communication_bytes += change;
      }
    }
    for (std::size_t i = 0; i < holders.size(); ++i) {
      holders[i].unit = static_cast<std::int32_t>(i);
      if (holders[i].bytes() > 0) {
        shards_.peak_holders_.push_back(holders[i]);
      }
    }
    std::stable_sort(
        shards_.peak_holders_.begin(),
        shards_.peak_holders_.end(),
        [](const PeakHolder& a, const PeakHolder& b) { return a.bytes() > b.bytes(); });
  }

  void add_exposed() {
    const auto is_one = [](const std::vector<std::uint32_t>& sorted, std::uint32_t operation) {
      return std::binary_search(sorted.begin(), sorted.end(), operation);
    };
    for (const TimeSegment& it : split_time(index_, track_)) {
      const bool gathers = is_one(gather_operations_, it.operation);
      if (!gathers && !is_one(reduce_operations_, it.operation)) {
        continue;
      }
      ShardTraffic& traffic = gathers ? shards_.gathers_ : shards_.reductions_;
      traffic.exposed += it.kind == TimeKind::kExposed ? it.end - it.begin : 0;
      traffic.waiting += it.kind == TimeKind::kWaiting ? it.end - it.begin : 0;
    }
  }

  const TraceIndex& index_;
  std::int32_t track_;
  Shards& shards_;
  const Program& program_;
  const std::vector<Buffer>& buffers_;
  std::vector<std::int32_t> unit_of_parameter_;
  std::map<std::uint16_t, std::int32_t> unit_of_layout_;
  std::map<std::uint32_t, Nanoseconds> change_times_;  ///< by alloc or free
  std::vector<Progress> progress_;                     ///< by unit
  std::vector<std::uint32_t> gather_operations_;
  std::vector<std::uint32_t> reduce_operations_;
  Nanoseconds now_;
};

Shards::Shards(const TraceIndex& index, int rank)
    : rank_(rank), whole_{index.step().begin, index.step().end} {
  const std::int32_t track = track_of(index, rank);
  const Program& program = *index.program(track).program;
  if (!gathers_parameters(index.plan(), index.track(track).class_index, program)) {
    why_empty_ = index.plan().mesh.size(Axis::kAllData) == 1
                     ? "one data-parallel rank: there is nobody to share parameters with"
                     : "every rank holds its parameters whole: nothing is gathered for use";
    return;
  }
  ShardReader(index, track, *this).read();
}

std::vector<ShardState> Shards::state(Nanoseconds time) const {
  const auto find = [time](const std::vector<ShardInterval>& row) -> const ShardInterval* {
    const auto after =
        std::upper_bound(row.begin(), row.end(), time, [](Nanoseconds at, const ShardInterval& it) {
          return at < it.begin;
        });
    return after == row.begin() || (after - 1)->end <= time ? nullptr : &*(after - 1);
  };
  std::vector<ShardState> states;
  states.reserve(units_.size());
  for (const ShardUnit& unit : units_) {
    ShardState& state = states.emplace_back();
    state.parameter_interval = find(unit.parameters);
    state.gradient_interval = find(unit.gradients);
    if (state.parameter_interval != nullptr) {
      state.parameters = state.parameter_interval->stage;
    }
    if (state.gradient_interval != nullptr) {
      state.gradients = state.gradient_interval->stage;
    }
  }
  return states;
}

}  // namespace lockstep::view
