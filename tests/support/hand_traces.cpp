#include "tests/support/hand_traces.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "core/check.h"
#include "core/queues.h"
#include "tests/core/check/tiny_plans.h"

namespace lockstep::test {
namespace {

/// Ranks, streams and meetings, played until nothing moves.
class Player {
 public:
  Player(const Plan& plan, int section, std::mt19937_64& random)
      : plan_(plan), random_(random), section_(plan.sections[static_cast<std::size_t>(section)]) {
    for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
      ranks_.push_back(prepare(rank));
    }
  }

  TraceStep play(int section) {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        moved = advance(rank) || moved;
      }
    }
    TraceStep step;
    step.section = section;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      TraceTrack track;
      track.class_index = plan_.class_of_rank(static_cast<int>(rank));
      track.ranks = {static_cast<std::int32_t>(rank)};
      for (std::uint32_t i = 0; i < ranks_[rank].spans.size(); ++i) {
        if (ranks_[rank].state[i] != State::kNone) {
          LOCKSTEP_CHECK(ranks_[rank].state[i] == State::kEnded, "the plan deadlocks");
          track.spans.push_back(ranks_[rank].spans[i]);
          step.end = std::max(step.end, ranks_[rank].spans[i].ended);
        }
      }
      step.track_of_rank.push_back(static_cast<std::int32_t>(rank));
      step.tracks.push_back(std::move(track));
    }
    return step;
  }

 private:
  enum class State : std::uint8_t { kNone, kWaiting, kArrived, kEnded };
  struct Rank {
    const Program* program = nullptr;
    std::vector<Span> spans;  ///< by operation
    std::vector<State> state;
    std::array<std::vector<std::uint32_t>, kQueueCount> queues;
    std::array<std::size_t, kQueueCount> head{};
    std::vector<std::uint8_t> queue_of;                   ///< by operation
    std::vector<std::vector<std::uint32_t>> collectives;  ///< by communicator
    std::vector<std::size_t> collectives_head;
    std::uint32_t cursor = 0;  ///< next to issue
    Nanoseconds host = 0;
  };
  /// A collective: (communicator, first member, number). A message: (-1 - source, destination,
  /// tag).
  using Key = std::tuple<int, int, std::int64_t>;
  using Members = std::vector<std::pair<std::size_t, std::uint32_t>>;

  Rank prepare(int rank) const {
    Rank it;
    it.program = &section_.programs[static_cast<std::size_t>(plan_.class_of_rank(rank))];
    it.spans.resize(it.program->operations.size());
    it.state.assign(it.program->operations.size(), State::kNone);
    it.queue_of.resize(it.program->operations.size());
    it.collectives.resize(plan_.communicators.size());
    it.collectives_head.resize(plan_.communicators.size());
    QueueNumbering numbering;
    for (std::uint32_t i = 0; i < it.spans.size(); ++i) {
      const Operation& op = it.program->operations[i];
      if (op.kind != OperationKind::kAlloc && op.kind != OperationKind::kFree) {
        it.spans[i].operation = i;
        it.state[i] = State::kWaiting;
        it.queue_of[i] = numbering.of(op);
        it.queues[it.queue_of[i]].push_back(i);
        if (op.kind == OperationKind::kCollective) {
          it.collectives[op.communicator].push_back(i);
        }
      }
    }
    return it;
  }

  Nanoseconds draw(Nanoseconds most) {
    return std::uniform_int_distribution<Nanoseconds>(0, most)(random_);
  }

  void issue(Rank& rank) {
    for (; rank.cursor < rank.spans.size(); ++rank.cursor) {
      const std::uint32_t i = rank.cursor;
      if (rank.state[i] == State::kNone) {
        continue;
      }
      if (rank.spans[i].issued == 0) {
        rank.host += 1 + draw(20);
        rank.spans[i].issued = rank.host;
      }
      const Operation& op = rank.program->operations[i];
      if (op.has(kHostSync) || op.kind == OperationKind::kHost) {
        if (rank.state[i] != State::kEnded) {
          return;  // looked at again when it has ended
        }
        rank.host = std::max(rank.host, rank.spans[i].ended);
      }
    }
  }

  bool advance(std::size_t number) {
    Rank& rank = ranks_[number];
    issue(rank);
    bool moved = false;
    for (std::size_t queue = 0; queue < kQueueCount; ++queue) {
      while (rank.head[queue] < rank.queues[queue].size() &&
             try_operation(number, rank.queues[queue][rank.head[queue]])) {
        moved = true;
        issue(rank);
      }
    }
    return moved;
  }

  /// True when the operation ended by this call.
  bool try_operation(std::size_t number, std::uint32_t i) {
    Rank& rank = ranks_[number];
    if (rank.state[i] == State::kArrived || rank.spans[i].issued == 0) {
      return false;
    }
    const Operation& op = rank.program->operations[i];
    Nanoseconds ready = rank.spans[i].issued;
    const auto after = [&](std::uint32_t on) {
      const bool ended = rank.state[on] == State::kEnded || rank.state[on] == State::kNone;
      ready = std::max(ready, rank.spans[on].ended);
      return ended;
    };
    for (const std::uint32_t on : rank.program->dependencies_of(op)) {
      if (!after(on)) {
        return false;
      }
    }
    const std::size_t queue = rank.queue_of[i];
    if (rank.head[queue] > 0) {
      after(rank.queues[queue][rank.head[queue] - 1]);
    }
    if (op.kind == OperationKind::kCollective) {
      const std::size_t head = rank.collectives_head[op.communicator];
      if (rank.collectives[op.communicator][head] != i) {
        return false;
      }
      if (head > 0) {
        after(rank.collectives[op.communicator][head - 1]);
      }
    }
    rank.spans[i].arrived = ready;
    rank.state[i] = State::kArrived;
    if (op.kind == OperationKind::kCollective || op.peer != kNoPeer) {
      return meet(number, i);
    }
    end({{number, i}}, ready, 1 + draw(100));
    return true;
  }

  bool meet(std::size_t number, std::uint32_t i) {
    const Operation& op = ranks_[number].program->operations[i];
    const int rank = static_cast<int>(number);
    Key key;
    std::size_t expected = 2;
    if (op.peer != kNoPeer) {
      const int peer = plan_.mesh.with(rank, Axis::kPipeline, op.peer);
      const bool sends = op.kind == OperationKind::kSend;
      key = {-1 - (sends ? rank : peer), sends ? peer : rank, op.tag};
    } else {
      const std::vector<int> group = members(plan_, plan_.communicators[op.communicator], rank);
      expected = group.size();
      const std::vector<std::uint32_t>& all = ranks_[number].collectives[op.communicator];
      key = {op.communicator, group.front(), std::find(all.begin(), all.end(), i) - all.begin()};
    }
    Members& there = meetings_[key];
    there.emplace_back(number, i);
    if (there.size() < expected) {
      return false;
    }
    Nanoseconds start = 0;
    for (const auto& [member, operation] : there) {
      start = std::max(start, ranks_[member].spans[operation].arrived);
    }
    end(there, start, 1 + draw(150));
    meetings_.erase(key);
    return true;
  }

  void end(const Members& who, Nanoseconds start, Nanoseconds duration) {
    for (const auto& [number, i] : who) {
      Rank& rank = ranks_[number];
      rank.spans[i].started = start;
      rank.spans[i].ended = start + duration;
      rank.state[i] = State::kEnded;
      const Operation& op = rank.program->operations[i];
      ++rank.head[rank.queue_of[i]];
      if (op.kind == OperationKind::kCollective) {
        ++rank.collectives_head[op.communicator];
      }
    }
  }

  const Plan& plan_;
  std::mt19937_64& random_;
  const Section& section_;
  std::vector<Rank> ranks_;
  std::map<Key, Members> meetings_;
};

}  // namespace

HandStep::HandStep(const Mesh& mesh) : tables_(mesh, two_layer_graph()) {
  Plan& plan = tables_.plan();
  plan.class_axes = present_axes(mesh);
  plan.variant_of_iteration = {0};
  plan.sections.push_back({SectionKind::kStep, 0, {}});
  trace_.steps.emplace_back();
}

void HandStep::add_program(Program program, std::vector<Buffer> buffers) {
  Plan& plan = tables_.plan();
  TraceStep& step = trace_.steps[0];
  const auto rank = static_cast<std::int32_t>(step.tracks.size());
  TraceTrack& track = step.tracks.emplace_back();
  track.class_index = rank;
  track.ranks = {rank};
  for (std::uint32_t i = 0; i < program.operations.size(); ++i) {
    const OperationKind kind = program.operations[i].kind;
    if (kind != OperationKind::kAlloc && kind != OperationKind::kFree) {
      track.spans.emplace_back().operation = i;
    }
  }
  step.track_of_rank.push_back(rank);
  plan.sections[0].programs.push_back(std::move(program));
  plan.buffers.push_back(std::move(buffers));
}

void HandStep::spans(int rank, const std::vector<std::array<Nanoseconds, 4>>& times) {
  std::vector<Span>& spans = trace_.steps[0].tracks[static_cast<std::size_t>(rank)].spans;
  LOCKSTEP_CHECK(spans.size() == times.size(), "one row of times per operation");
  for (std::size_t i = 0; i < times.size(); ++i) {
    spans[i].issued = times[i][0];
    spans[i].arrived = times[i][1];
    spans[i].started = times[i][2];
    spans[i].ended = times[i][3];
    trace_.steps[0].end = std::max(trace_.steps[0].end, times[i][3]);
  }
}

BufferId hand_buffer(ProgramBuilder& b) {
  return b.alloc(Category::kActivation, DType::kFp32, 64);
}

void hand_compute(ProgramBuilder& b, BufferId reads, BufferId writes) {
  b.compute(Work::kScale, {{64}}, {b.whole(reads)}, {b.whole(writes)});
}

void hand_all_reduce(ProgramBuilder& b, std::uint8_t group, BufferId of, std::uint16_t flags) {
  Extras extras;
  extras.stream = Stream::kData;
  extras.flags = flags;
  b.collective(
      Collective::kAllReduce, group, Reduction::kSum, 64, b.whole(of), b.whole(of), extras);
}

Trace random_trace(const Plan& plan, int section, std::mt19937_64& random) {
  Trace trace;
  trace.steps.push_back(Player(plan, section, random).play(section));
  return trace;
}

int steady_section(const Plan& plan) {
  const auto last = static_cast<int>(plan.variant_of_iteration.size()) - 1;
  return static_cast<int>(&plan.step(last) - plan.sections.data());
}

}  // namespace lockstep::test
