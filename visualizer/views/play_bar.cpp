#include "visualizer/views/play_bar.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/models/text_parts.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/plot.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Key;
using ui::S;
using ui::scaled;

/// How long a step takes to be played at speed 1.
constexpr double kSeconds = 12;
constexpr Nanoseconds kStrides = 100;

bool button(S text, const char* tag) {
  const bool hit = ImGui::Button(fmt::format("{}##{}", ui::tr(text), tag).c_str());
  ui::tag(tag, ui::tr(text));
  ImGui::SameLine();
  return hit;
}

}  // namespace

Nanoseconds time_of(const app::Session& session,
                    const view::TimeWindow& whole,
                    Nanoseconds otherwise) {
  return std::clamp(session.cursor.value_or(otherwise), whole.from, std::max(whole.from, whole.to));
}

void move_time(app::Session& session, const view::TimeWindow& whole, Nanoseconds now) {
  const Nanoseconds stride = std::max<Nanoseconds>(1, whole.length() / kStrides);
  const auto go = [&](Nanoseconds to) { session.cursor = std::clamp(to, whole.from, whole.to); };
  if (ui::chord(Key::kLeft, ui::kPlain, true)) {
    go(now - stride);
  } else if (ui::chord(Key::kRight, ui::kPlain, true)) {
    go(now + stride);
  } else if (ui::chord(Key::kHome, ui::kPlain)) {
    go(whole.from);
  } else if (ui::chord(Key::kEnd, ui::kPlain)) {
    go(whole.to);
  }
}

void PlayBar::use(const view::TimeWindow& whole, std::vector<Nanoseconds> events) {
  whole_ = whole;
  events_ = std::move(events);
  std::sort(events_.begin(), events_.end());
  events_.erase(std::unique(events_.begin(), events_.end()), events_.end());
  playing_ = false;
}

void PlayBar::toggle(app::Session& session, Nanoseconds now) {
  playing_ = !playing_;
  part_ = 0;
  session.cursor = playing_ && now >= whole_.to ? whole_.from : now;
}

void PlayBar::step(app::Session& session, Nanoseconds now, int direction) {
  playing_ = false;
  if (direction > 0) {
    const auto next = std::upper_bound(events_.begin(), events_.end(), now);
    session.cursor = next == events_.end() ? whole_.to : *next;
  } else {
    const auto here = std::lower_bound(events_.begin(), events_.end(), now);
    session.cursor = here == events_.begin() ? whole_.from : *(here - 1);
  }
}

void PlayBar::buttons(app::Session& session, Nanoseconds now, bool has_keys) {
  const bool space = has_keys && ui::chord(Key::kSpace, ui::kPlain);
  if (button(playing_ ? S::kPause : S::kPlay, "play.toggle") || space) {
    toggle(session, now);
  }
  const bool back = has_keys && ui::typed(',');
  if (ImGui::Button("\xE2\x86\x90##play.back") || back) {
    step(session, now, -1);
  }
  ui::tag("play.back", ui::tr(S::kStepBack));
  ImGui::SameLine();
  const bool forward = has_keys && ui::typed('.');
  if (ImGui::Button("\xE2\x86\x92##play.forward") || forward) {
    step(session, now, 1);
  }
  ui::tag("play.forward", ui::tr(S::kStepForward));
  ImGui::SameLine();
  const std::string speed = fmt::format("{} x", speed_);
  if (ImGui::Button((speed + "##play.speed").c_str())) {
    speed_ = speed_ >= 2 ? 0.25 : speed_ * 2;
  }
  ui::tag("play.speed", speed);
  ImGui::SameLine();
}

void PlayBar::slider(app::Session& session, Nanoseconds now) const {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string text = fmt::format(
      "{} / {}", view::time_text(now - whole_.from, true), view::time_text(whole_.length(), true));
  const float text_room = ImGui::CalcTextSize("888.8 ms / 888.8 ms").x + scaled(8);
  const float height = ImGui::GetFrameHeight();
  const float width = std::max(scaled(40), ImGui::GetContentRegionAvail().x - text_room);
  ImGui::InvisibleButton("##play.time", ImVec2(width, height));
  ui::tag("play.time", std::to_string(now));
  const ui::Rect rect{ImVec2(std::floor(at.x), at.y),
                      ImVec2(std::floor(at.x + width), at.y + height)};
  const ui::Plot plot{rect, whole_, 1};
  if (ImGui::IsItemActive()) {
    session.cursor = plot.time_at(ImGui::GetIO().MousePos.x);
  }
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const float middle = std::floor(at.y + height / 2);
  const float thick = std::floor(scaled(4));
  const float x = plot.x_of(now);
  list.AddRectFilled(ImVec2(rect.min.x, middle - thick / 2),
                     ImVec2(rect.max.x, middle + thick / 2),
                     ui::theme().active);
  list.AddRectFilled(
      ImVec2(rect.min.x, middle - thick / 2), ImVec2(x, middle + thick / 2), ui::theme().accent);
  float last = rect.min.x - 10;
  for (const Nanoseconds event : events_) {
    const float tick = plot.x_of(event);
    if (tick >= last + scaled(3)) {
      list.AddRectFilled(
          ImVec2(tick, middle + thick), ImVec2(tick + 1, rect.max.y - 1), ui::theme().muted);
      last = tick;
    }
  }
  list.AddCircleFilled(ImVec2(x, middle), std::floor(scaled(6)), ui::theme().accent);
  ImGui::SameLine();
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(text.c_str());
}

Nanoseconds PlayBar::draw(app::Session& session, Nanoseconds first, bool has_keys) {
  Nanoseconds now = time_of(session, whole_, first);
  if (playing_) {
    const double length = static_cast<double>(whole_.length());
    part_ += static_cast<double>(ImGui::GetIO().DeltaTime) * speed_ * length / kSeconds;
    const double whole_part = std::floor(part_);
    part_ -= whole_part;
    now = std::min(whole_.to, now + static_cast<Nanoseconds>(whole_part));
    playing_ = now < whole_.to;
    session.cursor = now;
  }
  buttons(session, now, has_keys);
  if (has_keys) {
    move_time(session, whole_, time_of(session, whole_, first));
  }
  slider(session, time_of(session, whole_, first));
  session.playing = playing_;
  return time_of(session, whole_, first);
}

std::vector<KeyHelp> PlayBar::keys() {
  return {{"Space", S::kKeyPlay}, {", .", S::kKeyStep}, {"\xE2\x86\x90 \xE2\x86\x92", S::kKeyTime}};
}

}  // namespace lockstep::views
