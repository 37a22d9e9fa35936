#include "visualizer/views/steps_view.h"

#include <algorithm>

#include "core/error.h"
#include "core/report_text.h"
#include "visualizer/models/collective_steps_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"
#include "visualizer/views/steps_parts.h"

namespace lockstep::views {
namespace {

using ui::S;
using view::StepMove;

constexpr float kSecondsPerStep = 0.8F;

const char* english(S id) {
  return ui::text_of(id, ui::Language::kEnglish);
}

}  // namespace

void StepsView::ask(app::Session& session, const app::CollectiveRequest& request) {
  wanted_ = request;
  asked_ = true;
  session.collectives().ask(request);
}

void StepsView::use(app::Session& session) {
  if (session.record() == nullptr && !asked_) {
    ask(session, wanted_);
  }
  if (session.record() == record_) {
    return;
  }
  record_ = session.record();
  playing_ = false;
  selected_.reset();
  error_.clear();
  steps_.reset();
  try {
    steps_.emplace(*record_);
  } catch (const Error& error) {  // a file whose moves cannot be followed
    error_ = error.what();
    return;
  }
  wanted_ = {record_->algorithm, record_->ranks, record_->message_bytes};
  go_to(1);
}

const view::CollectiveStep* StepsView::step() const {
  return now_.steps_done == 0 ? nullptr
                              : &steps_->steps()[static_cast<std::size_t>(now_.steps_done) - 1];
}

void StepsView::go_to(int steps_done) {
  now_ = steps_->holdings(std::clamp(steps_done, 0, count()));
  sent_.assign(static_cast<std::size_t>(steps_->ranks()), 0);
  for (int i = 0; i < now_.steps_done; ++i) {
    for (const StepMove& move : steps_->steps()[static_cast<std::size_t>(i)].moves) {
      sent_[static_cast<std::size_t>(move.src)] += move.bytes;
    }
  }
}

/// To just before the next phase, or the one before.
void StepsView::go_to_phase(int direction) {
  int target = direction > 0 ? count() : 0;
  for (const std::int32_t begin : steps_->phases()) {
    if (direction > 0 && begin > now_.steps_done) {
      target = begin;
      break;
    }
    if (direction < 0 && begin < now_.steps_done) {
      target = begin;
    }
  }
  go_to(target);
}

void StepsView::advance_time() {
  if (!playing_) {
    return;
  }
  waited_ += ImGui::GetIO().DeltaTime;
  if (waited_ < kSecondsPerStep) {
    return;
  }
  waited_ = 0;
  go_to(now_.steps_done + 1);
  playing_ = now_.steps_done < count();
}

void StepsView::handle_request_keys(app::Session& session) {
  app::CollectiveRequest request = wanted_;
  if (ui::typed('g')) {
    const auto at = std::find(kAlgorithms.begin(), kAlgorithms.end(), request.algorithm);
    const auto next = static_cast<std::size_t>(at - kAlgorithms.begin() + 1) % kAlgorithms.size();
    request.algorithm = kAlgorithms[next];
  }
  if (ui::typed('[') || ui::typed(']')) {
    const int ranks = request.ranks + (ui::typed(']') ? 1 : -1);
    request.ranks = std::clamp(ranks, kFewestRanks, kMostRanks);
  }
  if (ui::typed('(') || ui::typed(')')) {
    const std::int64_t bytes = ui::typed(')') ? request.bytes * 2 : request.bytes / 2;
    request.bytes = std::clamp(bytes, kLeastBytes, kMostBytes);
  }
  if (request != wanted_) {
    ask(session, request);
  }
  if (ui::typed('l')) {
    circle_ = !circle_;
  }
}

void StepsView::handle_step_keys() {
  using ui::Key;
  if (!steps_ || ui::modifiers_held() != ui::kPlain) {
    return;
  }
  const auto go_when = [&](Key key, int to) {
    if (ui::pressed(key)) {
      go_to(to);
    }
  };
  go_when(Key::kRight, now_.steps_done + 1);
  go_when(Key::kLeft, now_.steps_done - 1);
  go_when(Key::kHome, 0);
  go_when(Key::kEnd, count());
  if (ui::pressed(Key::kPageUp) || ui::pressed(Key::kPageDown)) {
    go_to_phase(ui::pressed(Key::kPageDown) ? 1 : -1);
  }
  if (ui::pressed(Key::kSpace, false)) {
    playing_ = !playing_;
  }
  if (ui::pressed(Key::kEscape, false)) {
    selected_.reset();
  }
  const auto walk = [&](Key key, int rank, int chunk) {
    if (!ui::pressed(key)) {
      return;
    }
    const bool had = selected_.has_value();
    const Cell at = selected_.value_or(Cell{});
    selected_ = Cell{std::clamp(at.rank + (had ? rank : 0), 0, steps_->ranks() - 1),
                     std::clamp(at.chunk + (had ? chunk : 0), 0, std::max(0, drawn_chunks_ - 1))};
  };
  walk(Key::kA, -1, 0);
  walk(Key::kD, 1, 0);
  walk(Key::kW, 0, -1);
  walk(Key::kS, 0, 1);
}

std::vector<KeyHelp> StepsView::keys() const {
  return {{"", S::kStepsKeyStep},
          {"", S::kStepsKeyPlay},
          {"", S::kStepsKeyRun},
          {"", S::kStepsKeyCell}};
}

void StepsView::draw(ViewContext& context, bool has_keys) {
  app::Session& session = context.session;
  use(session);
  if (has_keys) {
    handle_request_keys(session);
    handle_step_keys();
  }
  draw_request(session);
  const std::string& error = session.record_error().empty() ? error_ : session.record_error();
  if (!error.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    ImGui::TextWrapped("%s", error.c_str());
    ImGui::PopStyleColor();
    ui::tag("steps.error", error);
  }
  if (!steps_) {
    if (error.empty()) {
      ImGui::TextUnformatted(ui::tr(S::kStepsRunning));
      ui::tag("view.empty", ui::tr(S::kStepsRunning));
    }
    return;
  }
  advance_time();
  draw_controls();
  draw_headline();
  if (ImGui::GetContentRegionAvail().y >= 14 * line_height()) {
    draw_legend();
  }
  draw_picture();
}

std::string StepsView::text(const ViewContext& context) {
  use(context.session);
  if (steps_) {
    return view::collective_steps_text(*steps_, {});
  }
  const std::string& error = context.session.record_error();
  return (error.empty() ? std::string(ui::tr(S::kStepsRunning)) : error) + "\n";
}

bool StepsView::json(JsonWriter& json, const ViewContext& context) {
  use(context.session);
  if (!steps_) {
    return false;
  }
  view::write_collective(json, *steps_);
  return true;
}

view::DetailLines StepsView::details(const ViewContext&) {
  if (!steps_ || !selected_) {
    return {};
  }
  const auto chunk = static_cast<std::size_t>(selected_->chunk);
  view::DetailLines lines{
      {english(S::kSplitRank), std::to_string(selected_->rank)},
      {english(S::kStepsChunk), std::to_string(selected_->chunk)},
      {english(S::kStepsBytes), bytes_text(steps_->chunks()[chunk].bytes)},
      {english(S::kStepsHolds),
       view::rank_set_text(now_.at(selected_->rank, selected_->chunk), steps_->ranks())}};
  if (const view::RankSet owed = steps_->owed(selected_->rank, selected_->chunk); owed != 0) {
    lines.emplace_back(english(S::kStepsOwed), view::rank_set_text(owed, steps_->ranks()));
  }
  for (int i = now_.steps_done - 1; i >= 0; --i) {
    for (const StepMove& move : steps_->steps()[static_cast<std::size_t>(i)].moves) {
      if (move.dst == selected_->rank && move.chunk == selected_->chunk) {
        lines.emplace_back(english(S::kStepsGot), ui::trf(S::kStepsGotValue, move.src, i + 1));
      }
    }
  }
  return lines;
}

void StepsView::draw_details(ViewContext& context) {
  if (!steps_ || selected_) {
    View::draw_details(context);
    return;
  }
  draw_totals();
}

}  // namespace lockstep::views
