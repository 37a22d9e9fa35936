#include "core/planner/schedule/action_csv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/planner/schedule/action_csv_cells.h"
#include "core/planner/schedule/dependency.h"

namespace lockstep {
namespace {

/// Turns parsed rows into a Schedule, or fails at the first cell that breaks a rule. The passes
/// stand in the order in which they may rely on each other.
class ScheduleReader {
 public:
  ScheduleReader(std::vector<std::vector<PlacedAction>> rows, std::string_view source)
      : rows_(std::move(rows)), source_(source) {}

  Schedule read() {
    check_rows();
    place_stages();
    number_chunks();
    check_forwards_complete();
    check_order_in_rows();
    check_backwards_complete();
    if (with_communication_) {
      check_messages_complete();
    }
    check_cycles();
    return schedule_;
  }

 private:
  /// By ActionKind: the one action of this kind that works on a (stage, micro-batch), or null.
  using Slots = std::array<const PlacedAction*, kActionKindCount>;

  [[noreturn]] void fail(const PlacedAction& at, std::string_view reason) const {
    fail_at(source_, at.row, at.cell, reason);
  }

  static std::string where(const PlacedAction& placed) {
    return fmt::format("{} ({}:{})", action_text(placed.action), placed.row, placed.cell);
  }

  static std::string text_of(ActionKind kind, const Action& same_place) {
    return action_text({kind, same_place.stage, same_place.microbatch});
  }

  Slots& slots(std::int32_t stage, std::int32_t microbatch) {
    return slots_[static_cast<std::size_t>(stage) *
                      static_cast<std::size_t>(schedule_.microbatches) +
                  static_cast<std::size_t>(microbatch)];
  }
  const PlacedAction*& slot(ActionKind kind, std::int32_t stage, std::int32_t microbatch) {
    return slots(stage, microbatch)[static_cast<std::size_t>(kind)];
  }
  /// The whole backward or its input half, whichever there is.
  const PlacedAction* input_gradient(std::int32_t stage, std::int32_t microbatch) {
    const PlacedAction* whole = slot(ActionKind::kBackward, stage, microbatch);
    return whole != nullptr ? whole : slot(ActionKind::kBackwardInput, stage, microbatch);
  }

  void check_rows();
  void place_stages();
  void number_chunks();
  void check_forwards_complete();
  void check_order_in_rows();
  void check_compute(const PlacedAction& placed);
  void check_message(const PlacedAction& placed);
  void check_backwards_complete();
  void check_messages_complete();
  void require_message(ActionKind kind, std::int32_t stage, const PlacedAction& cause);
  void check_cycles();

  std::vector<std::vector<PlacedAction>> rows_;
  std::string_view source_;
  Schedule schedule_;
  std::map<std::int32_t, const PlacedAction*> first_of_stage_;
  std::vector<Slots> slots_;
  bool with_communication_ = false;
};

void ScheduleReader::check_rows() {
  if (rows_.empty()) {
    fail_at(source_, 1, 1, "no actions: expected one line per rank");
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    if (rows_[row].empty()) {
      fail_at(source_,
              static_cast<std::int32_t>(row) + 1,
              1,
              fmt::format("rank {} has no actions: every line is a rank", row));
    }
  }
}

/// Each stage on the one rank whose row names it.
void ScheduleReader::place_stages() {
  for (const std::vector<PlacedAction>& row : rows_) {
    std::vector<Action>& order = schedule_.ranks.emplace_back();
    for (const PlacedAction& placed : row) {
      order.push_back(placed.action);
      with_communication_ |= is_communication(placed.action.kind);
      const auto [entry, is_new] = first_of_stage_.emplace(placed.action.stage, &placed);
      const PlacedAction& first = *entry->second;
      if (!is_new && first.row != placed.row) {
        fail(placed,
             fmt::format("{} puts stage {} on rank {}, but {} has it on rank {}",
                         action_text(placed.action),
                         placed.action.stage,
                         placed.row - 1,
                         where(first),
                         first.row - 1));
      }
    }
  }
}

/// Chunk numbers in model order; every rank has to have as many.
void ScheduleReader::number_chunks() {
  std::vector<std::int32_t> chunks_of_rank(rows_.size(), 0);
  for (const auto& [stage, first] : first_of_stage_) {
    if (stage != schedule_.stages()) {
      fail(*first,
           fmt::format("stage {} has actions, but stage {} has none", stage, schedule_.stages()));
    }
    const std::int32_t rank = first->row - 1;
    schedule_.stage_to_rank.push_back(rank);
    schedule_.stage_to_chunk.push_back(chunks_of_rank[static_cast<std::size_t>(rank)]++);
  }
  schedule_.pipeline_degree = static_cast<std::int32_t>(rows_.size());
  schedule_.chunks = chunks_of_rank.front();
  for (std::size_t rank = 0; rank < chunks_of_rank.size(); ++rank) {
    if (chunks_of_rank[rank] != schedule_.chunks) {
      fail(rows_[rank].front(),
           fmt::format("rank {} holds {} stages and rank 0 holds {}: every rank has to hold the "
                       "same number",
                       rank,
                       chunks_of_rank[rank],
                       schedule_.chunks));
    }
  }
}

/// Also guards memory: after it, stages x micro-batches is at most the number of actions read.
void ScheduleReader::check_forwards_complete() {
  std::set<std::pair<std::int32_t, std::int32_t>> forwards;
  std::int32_t last_microbatch = 0;
  for (const std::vector<Action>& order : schedule_.ranks) {
    for (const Action& action : order) {
      last_microbatch = std::max(last_microbatch, action.microbatch);
      if (action.kind == ActionKind::kForward) {
        forwards.emplace(action.stage, action.microbatch);
      }
    }
  }
  schedule_.microbatches = last_microbatch + 1;
  std::pair<std::int32_t, std::int32_t> expected{0, 0};
  for (auto next = forwards.begin(); expected.first < schedule_.stages(); ++next) {
    if (next == forwards.end() || *next != expected) {
      const Action missing{ActionKind::kForward, expected.first, expected.second};
      fail(*first_of_stage_.at(expected.first),
           fmt::format("stage {} has no {}: every stage runs each of the micro-batches 0 to {}",
                       missing.stage,
                       action_text(missing),
                       last_microbatch));
    }
    if (expected.second++ == last_microbatch) {
      expected = {expected.first + 1, 0};
    }
  }
  slots_.resize(forwards.size(), Slots{});
}

void ScheduleReader::check_order_in_rows() {
  for (const std::vector<PlacedAction>& row : rows_) {
    for (const PlacedAction& placed : row) {
      const Action& action = placed.action;
      if (action.microbatch == kNoMicrobatch) {
        continue;  // unshard, reshard, reduce: their place is the author's choice
      }
      const PlacedAction*& own = slot(action.kind, action.stage, action.microbatch);
      if (own != nullptr) {
        fail(placed,
             fmt::format("{} again, first at {}:{}", action_text(action), own->row, own->cell));
      }
      if (is_compute(action.kind)) {
        check_compute(placed);
      } else {
        check_message(placed);
      }
      own = &placed;
    }
  }
}

void ScheduleReader::check_compute(const PlacedAction& placed) {
  const Action& action = placed.action;
  if (action.kind == ActionKind::kForward) {
    return;
  }
  const PlacedAction* whole = slot(ActionKind::kBackward, action.stage, action.microbatch);
  const PlacedAction* input = slot(ActionKind::kBackwardInput, action.stage, action.microbatch);
  if (action.kind == ActionKind::kBackward && input != nullptr) {
    fail(placed, action_text(action) + " repeats the input gradient of " + where(*input));
  }
  if (action.kind != ActionKind::kBackward && whole != nullptr) {
    fail(placed, action_text(action) + " repeats a part of " + where(*whole));
  }
  if (action.kind == ActionKind::kBackwardWeight) {
    if (input == nullptr) {
      fail(placed,
           action_text(action) + " has no " + text_of(ActionKind::kBackwardInput, action) +
               " before it");
    }
    return;
  }
  if (slot(ActionKind::kForward, action.stage, action.microbatch) == nullptr) {
    fail(placed,
         action_text(action) + " stands before its forward " +
             text_of(ActionKind::kForward, action));
  }
}

void ScheduleReader::check_message(const PlacedAction& placed) {
  const Action& action = placed.action;
  const bool is_forward =
      action.kind == ActionKind::kSendForward || action.kind == ActionKind::kRecvForward;
  const bool is_send =
      action.kind == ActionKind::kSendForward || action.kind == ActionKind::kSendBackward;
  // The border is the one behind `lower`: a forward leaves it upwards, a gradient comes back.
  const std::int32_t lower = is_forward == is_send ? action.stage : action.stage - 1;
  if (lower < 0 || !schedule_.crosses_ranks_after(lower)) {
    fail(placed,
         action_text(action) + ": there is no neighbouring stage on another rank to exchange with");
  }
  const PlacedAction* compute = is_forward
                                    ? slot(ActionKind::kForward, action.stage, action.microbatch)
                                    : input_gradient(action.stage, action.microbatch);
  if (is_send && compute == nullptr) {
    fail(placed, action_text(action) + " stands before the action that makes its message");
  }
  if (!is_send && compute != nullptr) {
    fail(placed, action_text(action) + " stands behind " + where(*compute) + ", which needs it");
  }
}

void ScheduleReader::check_backwards_complete() {
  for (const Slots& at : slots_) {
    const PlacedAction& forward = *at[static_cast<std::size_t>(ActionKind::kForward)];
    const PlacedAction* input = at[static_cast<std::size_t>(ActionKind::kBackwardInput)];
    if (at[static_cast<std::size_t>(ActionKind::kBackward)] != nullptr) {
      continue;
    }
    if (input == nullptr) {
      fail(forward,
           fmt::format("{} has no backward: neither {} nor {} and {}",
                       action_text(forward.action),
                       text_of(ActionKind::kBackward, forward.action),
                       text_of(ActionKind::kBackwardInput, forward.action),
                       text_of(ActionKind::kBackwardWeight, forward.action)));
    }
    if (at[static_cast<std::size_t>(ActionKind::kBackwardWeight)] == nullptr) {
      fail(*input,
           action_text(input->action) + " has no " +
               text_of(ActionKind::kBackwardWeight, input->action) + " behind it");
    }
  }
}

void ScheduleReader::check_messages_complete() {
  for (std::int32_t stage = 0; stage < schedule_.stages(); ++stage) {
    if (!schedule_.crosses_ranks_after(stage)) {
      continue;
    }
    for (std::int32_t microbatch = 0; microbatch < schedule_.microbatches; ++microbatch) {
      const PlacedAction& below = *slot(ActionKind::kForward, stage, microbatch);
      const PlacedAction& above = *slot(ActionKind::kForward, stage + 1, microbatch);
      require_message(ActionKind::kSendForward, stage, below);
      require_message(ActionKind::kRecvForward, stage + 1, above);
      require_message(ActionKind::kSendBackward, stage + 1, *input_gradient(stage + 1, microbatch));
      require_message(ActionKind::kRecvBackward, stage, *input_gradient(stage, microbatch));
    }
  }
}

void ScheduleReader::require_message(ActionKind kind,
                                     std::int32_t stage,
                                     const PlacedAction& cause) {
  const std::int32_t microbatch = cause.action.microbatch;
  if (slot(kind, stage, microbatch) == nullptr) {
    fail(cause,
         fmt::format("{} crosses ranks, but there is no {} (a file has all messages or none)",
                     action_text(cause.action),
                     action_text({kind, stage, microbatch})));
  }
}

void ScheduleReader::check_cycles() {
  const RunOrder run = find_run_order(schedule_);
  if (!run.cycle.empty()) {
    const ActionPlace& first = run.cycle.front();
    fail(rows_[static_cast<std::size_t>(first.rank)][static_cast<std::size_t>(first.index)],
         "deadlock, these wait for each other: " + describe_cycle(schedule_, run.cycle));
  }
}

}  // namespace

std::string write_action_csv(const Schedule& schedule) {
  std::string text;
  for (const std::vector<Action>& order : schedule.ranks) {
    for (std::size_t index = 0; index < order.size(); ++index) {
      text += index == 0 ? "" : ",";
      text += action_text(order[index]);
    }
    text += '\n';
  }
  return text;
}

Schedule read_action_csv(std::string_view text, std::string_view source) {
  return ScheduleReader(parse_action_rows(text, source), source).read();
}

}  // namespace lockstep
