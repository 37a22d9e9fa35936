#include "simulator/engine.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep::sim {
namespace {

constexpr std::uint32_t kComputeQueue = static_cast<std::uint32_t>(Stream::kCompute);
constexpr int kBetweenCheckpoints = 1 << 14;  ///< events: some milliseconds
constexpr Nanoseconds kNever = std::numeric_limits<Nanoseconds>::max();

/// Log-normal with mean of its logarithm 0, from a counter: the same for any order of events.
double jitter_factor(const WhatIf& what_if, int rank, std::uint32_t operation) {
  std::uint64_t x = what_if.seed * 0x9e3779b97f4a7c15U;
  x ^= (static_cast<std::uint64_t>(rank) << 32U) | operation;
  const auto next = [&x] {  // splitmix64 (Steele, Lea, Flood 2014)
    x += 0x9e3779b97f4a7c15U;
    std::uint64_t z = x;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53;
  };
  const double u = 1 - next();  // in (0, 1]
  const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * next());
  return std::exp(what_if.jitter * normal);
}

std::uint32_t bit(std::uint32_t queue) {
  return 1U << queue;
}

}  // namespace

Engine::Engine(const EngineInput& input)
    : in_(input),
      launch_(std::llround(input.costs.launch_overhead() * 1e9)),
      failure_(input.what_if.failed ? std::llround(input.what_if.failed->at_s * 1e9) : kNever) {
  for (const GroupPlacement& placement : in_.ranks.placements) {
    speed_beside_.push_back(in_.costs.compute_speed_beside(placement));
  }
  for (const RankClass& klass : in_.ranks.classes) {
    Rank& rank = ranks_.emplace_back();
    rank.klass = &klass;
    rank.program = &in_.lowered.programs[static_cast<std::size_t>(klass.plan_class)];
    const std::size_t operations = rank.program->operations.size();
    Span planned;
    planned.state = SpanState::kPlanned;
    rank.spans.assign(operations, planned);
    rank.status.resize(operations);
    rank.speed.fill(1);
    rank.failed = in_.what_if.failed && klass.ranks.front() == in_.what_if.failed->rank;
  }
  for (const GroupInstance& group : in_.ranks.groups) {
    meetings_.push_back({0, std::vector<std::uint32_t>(group.classes.size(), kNobody)});
  }
}

void Engine::happen(Nanoseconds time,
                    EventKind kind,
                    std::uint32_t rank,
                    std::uint32_t queue,
                    std::uint32_t version) {
  Happening what;
  what.kind = kind;
  what.rank = rank;
  what.queue = queue & 0x3fU;
  what.version = version & 0x3fffffU;
  events_.push(time, what);
}

void Engine::run() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    for (std::uint32_t queue = 0; queue < kQueueCount; ++queue) {
      look_at(rank, queue, 0);
    }
  }
  while (!events_.empty()) {
    check_stop(in_.stop_check);
    // A counter in a register: one more in memory would be a hundredth of the whole simulation.
    for (int left = kBetweenCheckpoints; left > 0 && !events_.empty(); --left) {
      const auto event = events_.pop();
      const Happening& what = event.payload;
      switch (what.kind) {
        case EventKind::kEnd:
          end_compute(what, event.time);
          break;
        case EventKind::kMessageEnd:
          end_message(what, event.time);
          break;
        case EventKind::kMeetingEnd:
          end_meeting(what.rank, event.time);
          break;
        case EventKind::kWake:
          ranks_[what.rank].queues[what.queue].woken = false;
          look_at(what.rank, what.queue, event.time);
          break;
        case EventKind::kHost:
          issue_shared(event.time);
          break;
      }
    }
  }
  find_stalls(end_);
}

// ---- issue -------------------------------------------------------------------------------------

/// Issues operations up to `operation`, or to the one that the host has to wait for. What a host
/// does depends on its own past only, so it is enough to know it when a stream asks.
void Engine::issue_until(std::uint32_t rank, std::uint32_t operation) {
  Rank& state = ranks_[rank];
  while (state.cursor <= operation && state.host_waits_for == kNobody) {
    issue_next(rank, state.host);
  }
}

void Engine::issue_next(std::uint32_t rank, Nanoseconds after) {
  Rank& state = ranks_[rank];
  const std::uint32_t index = state.cursor;
  const LoweredOperation& op = state.program->operations[index];
  const Nanoseconds at = op.kind == OperationKind::kHost ? after : after + launch_;
  if (state.failed && at > failure_) {
    state.host_waits_for = index;  // for ever
    return;
  }
  ++state.cursor;
  state.host = at;
  state.spans[index].operation = op.operation;
  state.spans[index].issued = at;
  state.spans[index].state = SpanState::kIssued;
  if (op.host_sync) {
    state.host_waits_for = index;
  }
}

/// host_shared: all ranks are threads of one process whose launches take turns.
void Engine::issue_shared(Nanoseconds now) {
  const auto count = static_cast<std::uint32_t>(ranks_.size());
  for (std::uint32_t tried = 0; tried < count; ++tried) {
    const std::uint32_t rank = next_to_issue_;
    next_to_issue_ = (next_to_issue_ + 1) % count;
    Rank& state = ranks_[rank];
    if (state.host_waits_for != kNobody || state.cursor == state.program->operations.size()) {
      continue;
    }
    const LoweredOperation& op = state.program->operations[state.cursor];
    issue_next(rank, now);
    shared_host_ = std::max(now, state.host);
    happen(shared_host_, EventKind::kHost, 0);
    const std::uint32_t queue = op.queue;
    if ((state.wait_for_host & bit(queue)) != 0) {
      state.wait_for_host = state.wait_for_host & ~bit(queue);
      look_at(rank, queue, now);
    }
    return;
  }
  host_idle_ = true;
}

void Engine::wake_shared_host(Nanoseconds now) {
  if (host_idle_) {
    host_idle_ = false;
    happen(std::max(now, shared_host_), EventKind::kHost, 0);
  }
}

/// The operation that the host waited for has ended.
void Engine::resume_host(std::uint32_t rank, Nanoseconds now) {
  Rank& state = ranks_[rank];
  state.host_waits_for = kNobody;
  state.host = std::max(state.host, now);
  if (in_.plan.host_shared) {
    wake_shared_host(now);
    return;
  }
  look_at_all(rank, std::exchange(state.wait_for_host, 0), now);
}

/// Whether `operation` is in its stream by now; if not, the stream is looked at again then.
bool Engine::issued(std::uint32_t rank,
                    std::uint32_t queue,
                    std::uint32_t operation,
                    Nanoseconds now) {
  Rank& state = ranks_[rank];
  if (state.cursor <= operation) {
    if (!in_.plan.host_shared) {
      issue_until(rank, operation);
    } else {
      wake_shared_host(now);
    }
    if (state.cursor <= operation) {
      state.wait_for_host = state.wait_for_host | bit(queue);
      return false;
    }
  }
  const Nanoseconds at = state.spans[operation].issued;
  if (at <= now) {
    return true;
  }
  if (!state.queues[queue].woken) {
    state.queues[queue].woken = true;
    happen(at, EventKind::kWake, rank, queue);
  }
  return false;
}

// ---- arrive ------------------------------------------------------------------------------------

/// The head of a stream arrives if nothing holds it.
void Engine::look_at(std::uint32_t rank, std::uint32_t queue, Nanoseconds now) {
  Rank& state = ranks_[rank];
  QueueState& line = state.queues[queue];
  const std::vector<std::uint32_t>& operations = state.program->queues[queue];
  if (line.busy || line.head == operations.size() || (state.failed && now >= failure_)) {
    return;
  }
  const std::uint32_t index = operations[line.head];
  const LoweredOperation& op = state.program->operations[index];
  if (!dependencies_ended(state, queue, op) || !issued(rank, queue, index, now) ||
      !may_be_taken(state, index)) {
    return;
  }
  line.busy = true;
  arrive(rank, index, now);
  if (in_.what_if.single_connection) {
    take(rank, now);
  }
}

/// The queues whose bits are set, ascending.
void Engine::look_at_all(std::uint32_t rank, std::uint32_t queues, Nanoseconds now) {
  for (; queues != 0; queues &= queues - 1) {
    look_at(rank, static_cast<std::uint32_t>(std::countr_zero(queues)), now);
  }
}

bool Engine::may_be_taken(const Rank& state, std::uint32_t operation) const {
  return !in_.what_if.single_connection || operation <= state.taken ||
         state.program->operations[operation].kind == OperationKind::kHost;
}

/// What was issued next may be taken up now, if nothing else holds it.
void Engine::take(std::uint32_t rank, Nanoseconds now) {
  Rank& state = ranks_[rank];
  const std::vector<LoweredOperation>& operations = state.program->operations;
  const auto passed = [&](std::uint32_t index) {
    const SpanState span = state.spans[index].state;
    return operations[index].kind == OperationKind::kHost ||
           (span != SpanState::kPlanned && span != SpanState::kIssued);
  };
  const std::uint32_t before = state.taken;
  while (state.taken < operations.size() && passed(state.taken)) {
    ++state.taken;
  }
  if (state.taken != before && state.taken < operations.size()) {
    look_at(rank, operations[state.taken].queue, now);
  }
}

bool Engine::dependencies_ended(Rank& state, std::uint32_t queue, const LoweredOperation& op) {
  QueueState& line = state.queues[queue];
  const std::span<const std::uint32_t> dependencies = state.program->dependencies_of(op);
  for (; line.dependency < dependencies.size(); ++line.dependency) {
    std::uint32_t& status = state.status[dependencies[line.dependency]];
    if ((status & kEnded) == 0) {
      status = status | bit(queue);
      return false;
    }
  }
  return true;
}

void Engine::arrive(std::uint32_t rank, std::uint32_t operation, Nanoseconds now) {
  Rank& state = ranks_[rank];
  Span& span = state.spans[operation];
  span.arrived = now;
  span.state = SpanState::kArrived;
  const LoweredOperation& op = state.program->operations[operation];
  if (op.guarded && in_.what_if.assume_overflow) {
    span.started = now;
    end(rank, operation, now);
    span.state = SpanState::kSkipped;
    return;
  }
  switch (op.kind) {
    case OperationKind::kCollective:
      arrive_at_group(rank, operation, now);
      break;
    case OperationKind::kSend:
    case OperationKind::kRecv:
      arrive_at_message(rank, operation, now);
      break;
    default:
      start(rank, operation, now);
      break;
  }
}

// ---- start -------------------------------------------------------------------------------------

double Engine::work_of(const Rank& state, const LoweredOperation& op) const {
  double work = static_cast<double>(in_.lowered.prices.duration(op.price));
  if (op.kind != OperationKind::kCompute) {
    return work;
  }
  work *= state.klass->compute_factor;
  if (op.of_model) {
    work *= state.klass->skew;
  }
  if (in_.what_if.jitter > 0) {
    work *= jitter_factor(in_.what_if, state.klass->ranks.front(), op.operation);
  }
  return work;
}

void Engine::start(std::uint32_t rank, std::uint32_t operation, Nanoseconds now) {
  Rank& state = ranks_[rank];
  Span& span = state.spans[operation];
  span.started = now;
  span.state = SpanState::kRunning;
  const LoweredOperation& op = state.program->operations[operation];
  const double work = work_of(state, op);
  if (op.queue == kComputeQueue) {
    state.running = {work, now, state.running.version, true};
    schedule_end(rank, now);
    return;
  }
  happen(now + std::llround(work), EventKind::kEnd, rank, op.queue);
}

/// The compute stream's operation ends when its work is done at the speed of now.
void Engine::schedule_end(std::uint32_t rank, Nanoseconds now) {
  Rank& state = ranks_[rank];
  state.running.version = (state.running.version + 1) & 0x3fffffU;
  happen(now + std::llround(state.running.left_ns / state.full_speed),
         EventKind::kEnd,
         rank,
         kComputeQueue,
         state.running.version);
}

void Engine::set_speed(std::uint32_t rank, std::uint32_t queue, double speed, Nanoseconds now) {
  Rank& state = ranks_[rank];
  state.speed[queue] = speed;
  const double slowest = *std::min_element(state.speed.begin(), state.speed.end());
  if (slowest == state.full_speed) {
    return;
  }
  if (state.running.active) {
    state.running.left_ns -= static_cast<double>(now - state.running.since) * state.full_speed;
    state.running.left_ns = std::max(0.0, state.running.left_ns);
    state.running.since = now;
  }
  state.full_speed = slowest;
  if (state.running.active) {
    schedule_end(rank, now);
  }
}

void Engine::arrive_at_group(std::uint32_t rank, std::uint32_t operation, Nanoseconds now) {
  const LoweredOperation& op = ranks_[rank].program->operations[operation];
  const std::int32_t number = ranks_[rank].klass->groups[op.communicator];
  const GroupInstance& group = in_.ranks.groups[static_cast<std::size_t>(number)];
  Meeting& meeting = meetings_[static_cast<std::size_t>(number)];
  const auto place =
      std::lower_bound(group.classes.begin(), group.classes.end(), static_cast<std::int32_t>(rank));
  meeting.operations[static_cast<std::size_t>(place - group.classes.begin())] = operation;
  if (++meeting.arrived < group.classes.size()) {
    return;
  }
  for (std::size_t i = 0; i < group.classes.size(); ++i) {
    begin_communication(
        static_cast<std::uint32_t>(group.classes[i]), meeting.operations[i], group.placement, now);
  }
  const Nanoseconds duration =
      in_.lowered.prices.duration(op.price, group.placement, in_.ranks.placements);
  happen(now + duration, EventKind::kMeetingEnd, static_cast<std::uint32_t>(number));
}

/// A message leaves when its send arrives: recvs are posted when the host issues them, long before,
/// so that the receiver's order never holds a sender. The recv begins when both are there.
void Engine::arrive_at_message(std::uint32_t rank, std::uint32_t operation, Nanoseconds now) {
  const RankClass& klass = *ranks_[rank].klass;
  const LoweredOperation& op = ranks_[rank].program->operations[operation];
  const auto peer = static_cast<std::uint32_t>(klass.peers[static_cast<std::size_t>(op.peer)]);
  const std::int32_t placement = klass.peer_placements[static_cast<std::size_t>(op.peer)];
  const Nanoseconds duration =
      in_.lowered.prices.duration(op.price, placement, in_.ranks.placements);
  const Span& other = ranks_[peer].spans[op.partner];
  if (op.kind == OperationKind::kSend) {
    begin_message(rank, operation, now, now + duration);
    if (other.state == SpanState::kArrived) {
      begin_message(peer, op.partner, now, now + duration);
    }
  } else if (other.state == SpanState::kRunning || other.state == SpanState::kDone) {
    begin_message(rank, operation, now, std::max(now, other.started + duration));
  }
}

void Engine::begin_message(std::uint32_t rank,
                           std::uint32_t operation,
                           Nanoseconds now,
                           Nanoseconds end) {
  const RankClass& klass = *ranks_[rank].klass;
  const LoweredOperation& op = ranks_[rank].program->operations[operation];
  begin_communication(
      rank, operation, klass.peer_placements[static_cast<std::size_t>(op.peer)], now);
  happen(end, EventKind::kMessageEnd, rank, op.queue);
}

void Engine::begin_communication(std::uint32_t rank,
                                 std::uint32_t operation,
                                 std::int32_t placement,
                                 Nanoseconds now) {
  Rank& state = ranks_[rank];
  state.spans[operation].started = now;
  state.spans[operation].state = SpanState::kRunning;
  set_speed(rank,
            state.program->operations[operation].queue,
            speed_beside_[static_cast<std::size_t>(placement)],
            now);
}

// ---- end ---------------------------------------------------------------------------------------

std::uint32_t Engine::head_of(const Happening& what) const {
  const Rank& state = ranks_[what.rank];
  return state.program->queues[what.queue][state.queues[what.queue].head];
}

void Engine::end_compute(const Happening& what, Nanoseconds now) {
  Rank& state = ranks_[what.rank];
  if (what.queue == kComputeQueue) {
    if (!state.running.active || what.version != state.running.version) {
      return;  // the end has moved
    }
    state.running.active = false;
  }
  end(what.rank, head_of(what), now);
}

void Engine::end_message(const Happening& what, Nanoseconds now) {
  set_speed(what.rank, what.queue, 1, now);
  end(what.rank, head_of(what), now);
}

void Engine::end_meeting(std::uint32_t number, Nanoseconds now) {
  const GroupInstance& group = in_.ranks.groups[number];
  Meeting& meeting = meetings_[number];
  meeting.arrived = 0;
  for (std::size_t i = 0; i < group.classes.size(); ++i) {
    const auto rank = static_cast<std::uint32_t>(group.classes[i]);
    const std::uint32_t operation = meeting.operations[i];
    set_speed(rank, ranks_[rank].program->operations[operation].queue, 1, now);
    end(rank, operation, now);
  }
}

void Engine::end(std::uint32_t rank, std::uint32_t operation, Nanoseconds now) {
  Rank& state = ranks_[rank];
  if (state.failed && now > failure_) {
    return;
  }
  const std::uint32_t queue = state.program->operations[operation].queue;
  Span& span = state.spans[operation];
  span.ended = now;
  span.state = SpanState::kDone;
  end_ = std::max(end_, now);
  const std::uint32_t waiting = state.status[operation];
  state.status[operation] = kEnded;
  QueueState& line = state.queues[queue];
  ++line.head;
  line.dependency = 0;
  line.busy = false;
  if (state.host_waits_for == operation) {
    resume_host(rank, now);
  }
  look_at(rank, queue, now);
  look_at_all(rank, waiting, now);
}

// ---- what never ended --------------------------------------------------------------------------

void Engine::find_stalls(Nanoseconds last) {
  bool unfinished = false;
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    Rank& state = ranks_[rank];
    bool died = false;
    for (std::uint32_t i = 0; i < state.spans.size(); ++i) {
      Span& span = state.spans[i];
      if (span.state == SpanState::kDone || span.state == SpanState::kSkipped) {
        continue;
      }
      unfinished = true;
      span.operation = state.program->operations[i].operation;
      if (span.state == SpanState::kRunning) {
        span.ended = std::min(failure_, last);
      }
      if (state.failed && !died) {
        died = true;
        stalls_.push_back({state.klass->ranks.front(),
                           span.operation,
                           std::min(failure_, last),
                           {state.klass->ranks.front()}});
      } else if (!state.failed && span.state == SpanState::kArrived) {
        add_stall(rank, i);
      }
    }
  }
  if (!unfinished) {
    return;
  }
  if (!in_.what_if.failed) {
    refuse_deadlock();
  }
  Nanoseconds since = last;
  for (const Stall& stall : stalls_) {
    since = std::min(since, stall.since);
  }
  const Nanoseconds timeout = std::llround(in_.what_if.timeout_s * 1e9);
  end_ = std::max(last, since + timeout);
}

void Engine::add_stall(std::uint32_t rank, std::uint32_t operation) {
  const Rank& state = ranks_[rank];
  const LoweredOperation& op = state.program->operations[operation];
  Stall stall{state.klass->ranks.front(), op.operation, state.spans[operation].arrived, {}};
  if (op.kind == OperationKind::kCollective) {
    const auto number = static_cast<std::size_t>(state.klass->groups[op.communicator]);
    const GroupInstance& group = in_.ranks.groups[number];
    for (std::size_t i = 0; i < group.classes.size(); ++i) {
      const std::uint32_t at = meetings_[number].operations[i];
      const Rank& member = ranks_[static_cast<std::size_t>(group.classes[i])];
      if (at == kNobody || member.spans[at].state != SpanState::kArrived) {
        stall.missing.push_back(member.klass->ranks.front());
      }
    }
  } else if (op.peer != kNoPeer) {
    const auto peer =
        static_cast<std::size_t>(state.klass->peers[static_cast<std::size_t>(op.peer)]);
    stall.missing.push_back(ranks_[peer].klass->ranks.front());
  }
  stalls_.push_back(std::move(stall));
}

void Engine::refuse_deadlock() const {
  if (stalls_.empty()) {
    throw InternalError("simulator", "the plan stands still and nothing waits for another rank");
  }
  const Stall& stall = stalls_.front();
  throw TimeoutError("simulator",
                     fmt::format("deadlock: rank {} waits at operation {} for rank {}; "
                                 "lockstep plan --check names the cycle",
                                 stall.rank,
                                 stall.operation,
                                 stall.missing.empty() ? -1 : stall.missing.front()));
}

TraceStep Engine::take_step() {
  TraceStep step;
  step.end = end_;
  step.track_of_rank = in_.ranks.class_of_rank;
  for (Rank& rank : ranks_) {
    step.tracks.push_back({rank.klass->plan_class, rank.klass->ranks, std::move(rank.spans)});
  }
  return step;
}

}  // namespace lockstep::sim
