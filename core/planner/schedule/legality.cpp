// Which schedules exist: every refusal with its reason and, where there is one, the way out.
//
// The conditions are those that torch.distributed.pipelining 2.7 checks when a schedule is
// constructed, so that what Lockstep plans is what PyTorch would run.
#include <string>

#include <fmt/core.h>

#include "core/planner/schedule/generators.h"

namespace lockstep {
namespace {

/// A plan holds at most 50 M operations, and each of these actions becomes at least one.
constexpr std::int64_t kMaximumActions = 50'000'000;

bool one_stage_per_rank(ScheduleKind kind) {
  return kind == ScheduleKind::kGPipe || kind == ScheduleKind::k1F1B;
}

bool runs_in_rounds(ScheduleKind kind) {
  return kind == ScheduleKind::kInterleaved || kind == ScheduleKind::kZbH1 ||
         kind == ScheduleKind::kInterleavedZb;
}

bool splits_backward(ScheduleKind kind) {
  return kind == ScheduleKind::kZbH1 || kind == ScheduleKind::kInterleavedZb ||
         kind == ScheduleKind::kZbV;
}

void check_positive(const ScheduleRequest& request, std::vector<std::string>& found) {
  const auto check = [&](std::int32_t value, std::string_view what) {
    if (value < 1) {
      found.push_back(fmt::format("{} is {}, must be at least 1", what, value));
    }
  };
  check(request.pipeline_degree, "the number of pipeline ranks");
  check(request.chunks, "the number of chunks per rank");
  check(request.microbatches, "the number of micro-batches");
}

void check_size(const ScheduleRequest& request, std::vector<std::string>& found) {
  const std::int64_t stages = std::int64_t{request.pipeline_degree} * request.chunks;
  const std::int64_t per_cell = splits_backward(request.kind) ? 3 : 2;
  // Compared by division: the product of three 31-bit numbers does not fit.
  if (stages > kMaximumActions / per_cell / request.microbatches) {
    found.push_back(fmt::format(
        "{} pipeline ranks x {} chunks x {} micro-batches x {} actions is more than {} actions: "
        "reduce the micro-batches",
        request.pipeline_degree,
        request.chunks,
        request.microbatches,
        per_cell,
        kMaximumActions));
  }
}

void check_chunks(const ScheduleRequest& request, std::vector<std::string>& found) {
  const std::string_view name = name_of(request.kind);
  if (one_stage_per_rank(request.kind) && request.chunks != 1) {
    found.push_back(fmt::format(
        "{} holds one stage per rank: chunks is {}, must be 1 (interleaved and looped-bfs take "
        "several)",
        name,
        request.chunks));
  }
  if (request.kind == ScheduleKind::kZbH1 && request.chunks != 1) {
    found.push_back(fmt::format(
        "zb-h1 holds one stage per rank: chunks is {}, must be 1 (interleaved-zb takes several)",
        request.chunks));
  }
  if (request.kind == ScheduleKind::kZbV && request.chunks != 2) {
    found.push_back(fmt::format(
        "zbv lays exactly 2 chunks per rank out as a V: chunks is {}, must be 2", request.chunks));
  }
}

/// The nearest legal micro-batch counts around one that does not divide into its rounds.
std::string divisible_neighbours(std::int32_t degree, std::int32_t microbatches) {
  const auto fits = [degree](std::int64_t count) {
    return count % std::max(std::int64_t{1}, count / degree) == 0;
  };
  std::int64_t below = microbatches;
  std::int64_t above = microbatches;
  while (!fits(below)) {
    --below;
  }
  while (!fits(above)) {
    ++above;
  }
  return fmt::format("{} or {}", below, above);
}

void check_microbatches(const ScheduleRequest& request, std::vector<std::string>& found) {
  if (one_stage_per_rank(request.kind) && request.microbatches < request.pipeline_degree) {
    found.push_back(fmt::format(
        "{} needs at least as many micro-batches as pipeline ranks: {} micro-batches, {} ranks; "
        "raise training.accumulate (PyTorch refuses fewer for its single-stage schedules since "
        "1F1B hung with one micro-batch, pytorch pull request 144702)",
        name_of(request.kind),
        request.microbatches,
        request.pipeline_degree));
  }
  if (!runs_in_rounds(request.kind)) {
    return;
  }
  const std::int32_t rounds =
      interleaved_round_count(request.pipeline_degree, request.microbatches);
  if (request.microbatches % rounds != 0) {
    found.push_back(fmt::format(
        "{} walks through the micro-batches in max(1, M / P) = {} equal rounds: {} micro-batches "
        "do not divide into {} rounds, nearest: {}",
        name_of(request.kind),
        rounds,
        request.microbatches,
        rounds,
        divisible_neighbours(request.pipeline_degree, request.microbatches)));
  }
}

}  // namespace

std::vector<std::string> problems(const ScheduleRequest& request) {
  std::vector<std::string> found;
  check_positive(request, found);
  if (!found.empty()) {
    return found;  // the other rules divide by these numbers
  }
  check_size(request, found);
  check_chunks(request, found);
  check_microbatches(request, found);
  return found;
}

}  // namespace lockstep
