#include "executor/job.h"

#include <algorithm>
#include <string>

#include "core/error.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::exec {

Job::Job(const Plan& plan, const TrainingSpec& training, Host& host, const JobOptions& options)
    : Job(plan,
          training,
          std::vector<Host*>(static_cast<std::size_t>(plan.mesh.world_size()), &host),
          options) {}

Job::Job(const Plan& plan,
         const TrainingSpec& training,
         std::span<Host* const> hosts,
         const JobOptions& options)
    : plan_(plan) {
  auto worlds = make_local_communicators(plan.mesh.world_size(), options.local);
  for (std::size_t rank = 0; rank < worlds.size(); ++rank) {
    members_.push_back(std::make_unique<Member>(options.device));
    Member& member = *members_.back();
    member.world = std::move(worlds[rank]);
    member.communicators.resize(plan.communicators.size());
    member.device.on_failure([&member](const char* what) { member.world->abort(what); });
    member.interpreter = std::make_unique<Interpreter>(InterpreterInput{
        plan, training, static_cast<int>(rank), member.device, member.communicators, *hosts[rank]});
  }
  busy_ = ranks();
  for (int rank = 0; rank < ranks(); ++rank) {
    members_[static_cast<std::size_t>(rank)]->thread =
        std::thread([this, rank, threads = options.kernel_threads] { serve(rank, threads); });
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_ == 0; });
}

Job::~Job() {
  {
    const std::lock_guard lock(mutex_);
    command_ = {};
    ++commands_;
  }
  changed_.notify_all();
  for (const auto& member : members_) {
    member->thread.join();
  }
}

/// Every rank takes part in forming every group, in the order of the plan's table.
void Job::join_groups(int rank) {
  Member& member = *members_[static_cast<std::size_t>(rank)];
  for (std::size_t i = 0; i < plan_.communicators.size(); ++i) {
    const std::vector<int> group = members(plan_, plan_.communicators[i], rank);
    const bool inside = std::find(group.begin(), group.end(), rank) != group.end();
    member.communicators[i] = member.world->split(inside ? group.front() : -1, rank);
  }
}

/// Keeps the cause: what other ranks throw because of it says only that a rank failed.
void Job::report(int rank, const std::exception_ptr& error) {
  bool follows = false;
  std::string what = "an exception that is no std::exception";
  try {
    std::rethrow_exception(error);
  } catch (const Error& failure) {
    follows = failure.kind() == ErrorKind::kRankFailed;
    what = failure.what();
  } catch (const std::exception& failure) {
    what = failure.what();
  } catch (...) {  // keeps its name
  }
  {
    const std::lock_guard lock(mutex_);
    if (failure_ == nullptr || (failure_follows_ && !follows)) {
      failure_ = error;
      failure_follows_ = follows;
    }
  }
  members_[static_cast<std::size_t>(rank)]->world->abort(what);
}

void Job::serve(int rank, int kernel_threads) {
  const auto attempt = [&](auto&& action) {
    try {
      action();
    } catch (...) {
      report(rank, std::current_exception());
    }
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) {
      changed_.notify_all();
    }
  };
  attempt([&] {
    kernels::cpu::set_float_gemm_threads(kernel_threads);
    join_groups(rank);
  });
  std::uint64_t done = 0;
  while (true) {
    Command command;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return commands_ > done; });
      done = commands_;
      command = command_;
    }
    if (command.section < 0) {
      return;
    }
    attempt([&] {
      members_[static_cast<std::size_t>(rank)]->interpreter->run(command.section,
                                                                 command.iteration);
    });
  }
}

void Job::run(const Section& section, std::int64_t iteration) {
  std::unique_lock lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
  command_ = {static_cast<int>(&section - plan_.sections.data()), iteration};
  busy_ = ranks();
  ++commands_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return busy_ == 0; });
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
}

namespace {

/// The clock of a trace of one step starts with the step.
void begin_at_zero(TraceStep& step) {
  for (TraceTrack& track : step.tracks) {
    for (Span& span : track.spans) {
      for (Nanoseconds* time : {&span.issued, &span.arrived, &span.started, &span.ended}) {
        *time -= step.begin;
      }
    }
  }
  step.end -= step.begin;
  step.begin = 0;
}

}  // namespace

TraceStep Job::trace_step() const {
  TraceStep step;
  step.section = command_.section;
  step.iteration = static_cast<std::int32_t>(command_.iteration);
  for (int rank = 0; rank < ranks(); ++rank) {
    TraceTrack track;
    track.class_index = plan_.class_of_rank(rank);
    track.ranks = {rank};
    const std::span<const Span> spans = at(rank).interpreter->spans();
    track.spans.assign(spans.begin(), spans.end());
    if (!track.spans.empty()) {
      const Nanoseconds begin = track.spans.front().issued;
      step.begin = rank == 0 ? begin : std::min(step.begin, begin);
      for (const Span& span : track.spans) {
        step.end = std::max(step.end, span.ended);
      }
    }
    step.track_of_rank.push_back(rank);
    step.tracks.push_back(std::move(track));
  }
  begin_at_zero(step);
  return step;
}

}  // namespace lockstep::exec
