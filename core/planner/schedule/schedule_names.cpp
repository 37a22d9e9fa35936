// The spellings of schedules and actions.
#include <array>

#include "core/planner/schedule/schedule.h"

namespace lockstep {
namespace {

struct ScheduleName {
  std::string_view name;
  std::string_view pytorch_class;
};

/// In the order of ScheduleKind.
constexpr std::array<ScheduleName, kScheduleKindCount> kScheduleNames = {{
    {"gpipe", "ScheduleGPipe"},
    {"1f1b", "Schedule1F1B"},
    {"interleaved", "ScheduleInterleaved1F1B"},
    {"looped-bfs", "ScheduleLoopedBFS"},
    {"zb-h1", "ScheduleInterleavedZeroBubble"},
    {"interleaved-zb", "ScheduleInterleavedZeroBubble"},
    {"zbv", "ScheduleZBVZeroBubble"},
}};

/// In the order of ActionKind.
constexpr std::array<std::string_view, kActionKindCount> kActionNames = {
    "F",
    "B",
    "I",
    "W",
    "UNSHARD",
    "RESHARD",
    "REDUCE_GRAD",
    "SEND_F",
    "RECV_F",
    "SEND_B",
    "RECV_B",
};

}  // namespace

std::string_view name_of(ActionKind kind) {
  return kActionNames.at(static_cast<std::size_t>(kind));
}

std::string action_text(const Action& action) {
  std::string text = std::to_string(action.stage);
  text += name_of(action.kind);
  if (action.microbatch != kNoMicrobatch) {
    text += std::to_string(action.microbatch);
  }
  return text;
}

std::string_view name_of(ScheduleKind kind) {
  return kScheduleNames.at(static_cast<std::size_t>(kind)).name;
}

std::string_view pytorch_class_of(ScheduleKind kind) {
  return kScheduleNames.at(static_cast<std::size_t>(kind)).pytorch_class;
}

}  // namespace lockstep
