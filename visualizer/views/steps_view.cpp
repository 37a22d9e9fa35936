#include "visualizer/views/steps_view.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include <fmt/format.h>

#include "core/error.h"
#include "core/report_text.h"
#include "visualizer/models/collective_steps_text.h"
#include "visualizer/models/view_json.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::views {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;
using view::StepMove;

constexpr std::array<const char*, 3> kAlgorithms{"ring", "tree", "direct"};
constexpr int kFewestRanks = 2;
constexpr int kMostRanks = 8;
constexpr std::int64_t kLeastBytes = 64;
constexpr std::int64_t kMostBytes = 1 << 20;
constexpr float kSecondsPerStep = 0.8F;
constexpr double kTurn = 6.283185307179586;

const char* english(S id) {
  return ui::text_of(id, ui::Language::kEnglish);
}

float button_width(const std::string& text) {
  return ImGui::CalcTextSize(text.c_str()).x + 2 * ImGui::GetStyle().FramePadding.x;
}

/// On the same line while there is room for so many pixels.
void flow(float width) {
  const float right = ImGui::GetWindowPos().x + ImGui::GetWindowContentRegionMax().x;
  if (ImGui::GetItemRectMax().x + ImGui::GetStyle().ItemSpacing.x + width <= right) {
    ImGui::SameLine();
  }
}

bool button(const std::string& text, const char* tag, bool enabled = true, bool first = false) {
  if (!first) {
    flow(button_width(text));
  }
  ImGui::BeginDisabled(!enabled);
  ImGui::PushStyleColor(ImGuiCol_Text, enabled ? ui::theme().text : ui::theme().disabled);
  const bool hit = ImGui::Button(fmt::format("{}##{}", text, tag).c_str());
  ImGui::PopStyleColor();
  ImGui::EndDisabled();
  ui::tag(tag, "", enabled);
  return hit && enabled;
}

bool overlap(const Rect& a, const Rect& b) {
  return a.min.x < b.max.x && b.min.x < a.max.x && a.min.y < b.max.y && b.min.y < a.max.y;
}

ImVec2 centre_of(const Rect& rect) {
  return {(rect.min.x + rect.max.x) / 2, (rect.min.y + rect.max.y) / 2};
}

float line_height() {
  return ui::state().fonts.small->FontSize + 2;
}

}  // namespace

// ---- What is shown ------------------------------------------------------------------------------

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

// ---- Input --------------------------------------------------------------------------------------

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

// ---- Widgets ------------------------------------------------------------------------------------

void StepsView::draw_request(app::Session& session) {
  app::CollectiveRequest request = wanted_;
  for (std::size_t i = 0; i < kAlgorithms.size(); ++i) {
    const std::string name = kAlgorithms[i];
    if (i > 0) {
      flow(ImGui::CalcTextSize(name.c_str()).x + 1.5F * ImGui::GetFrameHeight());
    }
    if (ImGui::RadioButton(name.c_str(), wanted_.algorithm == name)) {
      request.algorithm = name;
    }
    ui::tag("steps." + name, wanted_.algorithm == name ? "current" : "");
  }
  const auto stepper = [&](const std::string& text, const char* less, const char* more) {
    flow(button_width(text) + 2 * ImGui::GetFrameHeight() + scaled(16));
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(text.c_str());
    int direction = 0;
    if (button("\xE2\x88\x92", less)) {
      direction = -1;
    }
    if (button("+", more)) {
      direction = 1;
    }
    return direction;
  };
  const int ranks =
      stepper(ui::trf(S::kStepsRanks, wanted_.ranks), "steps.ranks.less", "steps.ranks.more");
  if (ranks != 0) {
    request.ranks = std::clamp(request.ranks + ranks, kFewestRanks, kMostRanks);
  }
  const int size = stepper(bytes_text(wanted_.bytes), "steps.size.less", "steps.size.more");
  if (size != 0) {
    const std::int64_t bytes = size > 0 ? request.bytes * 2 : request.bytes / 2;
    request.bytes = std::clamp(bytes, kLeastBytes, kMostBytes);
  }
  if (request != wanted_) {
    ask(session, request);
  }
}

void StepsView::draw_controls() {
  const bool words = ImGui::GetContentRegionAvail().x >= scaled(430);
  const auto shown = [&](S word, const char* symbol) {
    return std::string(words ? ui::tr(word) : symbol);
  };
  const bool at_begin = now_.steps_done == 0;
  const bool at_end = now_.steps_done == count();
  if (button(shown(S::kStepsFirst, "|<"), "steps.first", !at_begin, true)) {
    go_to(0);
  }
  if (button(shown(S::kStepsBack, "<"), "steps.back", !at_begin)) {
    go_to(now_.steps_done - 1);
  }
  if (button(ui::tr(playing_ ? S::kStepsPause : S::kStepsPlay), "steps.play", !at_end)) {
    playing_ = !playing_;
    waited_ = 0;
  }
  if (button(shown(S::kStepsForth, ">"), "steps.forth", !at_end)) {
    go_to(now_.steps_done + 1);
  }
  if (button(shown(S::kStepsPhase, ">>"), "steps.phase", !at_end)) {
    go_to_phase(1);
  }
  if (button(shown(S::kStepsLast, ">|"), "steps.last", !at_end)) {
    go_to(count());
  }
  if (button(ui::tr(circle_ ? S::kStepsRow : S::kStepsCircle), "steps.layout")) {
    circle_ = !circle_;
  }
}

void StepsView::draw_headline() const {
  const CollectiveRecord& head = steps_->head();
  std::string text = ui::trf(S::kStepsTitle,
                             name_of(head.collective),
                             bytes_text(head.message_bytes),
                             head.algorithm,
                             head.ranks,
                             now_.steps_done,
                             count());
  text += ". ";
  text += step() == nullptr ? ui::tr(S::kStepsBefore)
                            : ui::tr(step()->reduces ? S::kStepsReduce : S::kStepsCopy);
  ImGui::TextWrapped("%s", text.c_str());
  ui::tag("steps.position", std::to_string(now_.steps_done));
  for (const std::string& problem : steps_->problems()) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    ImGui::TextWrapped("%s", ui::trf(S::kStepsWrong, problem).c_str());
    ImGui::PopStyleColor();
    ui::tag("steps.problem", problem);
  }
}

void StepsView::draw_legend() const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float right = origin.x + ImGui::GetContentRegionAvail().x;
  ImVec2 at = origin;
  const std::string more =
      ui::trf(S::kStepsMore, static_cast<int>(steps_->chunks().size()) - drawn_chunks_);
  std::vector<std::string> entries{ui::tr(S::kStepsLegendPart),
                                   ui::tr(S::kStepsLegendAll),
                                   ui::tr(S::kStepsReduce),
                                   ui::tr(S::kStepsCopy)};
  if (drawn_chunks_ > 0 && drawn_chunks_ < static_cast<int>(steps_->chunks().size())) {
    entries.push_back(more);
  }
  for (const std::string& entry : entries) {
    const float width = ui::text_width(*font, entry);
    if (at.x > origin.x && at.x + width > right) {
      at = ImVec2(origin.x, at.y + line_height());
    }
    ui::text_at(list, font, at, ui::theme().muted, ui::elided(*font, entry, right - at.x));
    at.x += width + scaled(16);
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line_height()));
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

// ---- The picture --------------------------------------------------------------------------------

bool StepsView::place_circle(const Rect& area) {
  const int ranks = steps_->ranks();
  const float head = line_height();
  cell_height_ = std::floor(ui::state().fonts.small->FontSize + scaled(7));
  drawn_chunks_ = static_cast<int>(steps_->chunks().size());
  const ImVec2 cells(std::floor(scaled(66)), cell_height_ * static_cast<float>(drawn_chunks_));
  const ImVec2 whole(cells.x, cells.y + 2 * head);
  const ImVec2 middle = centre_of(area);
  const float x_radius = std::min((area.width() - whole.x) / 2, scaled(420));
  const float y_radius = (area.height() - whole.y) / 2;
  columns_.clear();
  std::vector<Rect> taken;
  for (int rank = 0; rank < ranks; ++rank) {
    const double angle = kTurn * rank / ranks - kTurn / 4;
    const float x = middle.x + x_radius * static_cast<float>(std::cos(angle));
    const float y = middle.y + y_radius * static_cast<float>(std::sin(angle));
    const ImVec2 min(std::floor(x - whole.x / 2), std::floor(y - whole.y / 2));
    const float gap = scaled(14);
    const Rect with_gap{ImVec2(min.x - gap, min.y), ImVec2(min.x + whole.x + gap, min.y + whole.y)};
    for (const Rect& other : taken) {
      if (overlap(other, with_gap)) {
        return false;
      }
    }
    taken.push_back(with_gap);
    columns_.push_back(
        {ImVec2(min.x, min.y + head), ImVec2(min.x + cells.x, min.y + head + cells.y)});
  }
  return x_radius > 0 && y_radius >= 0;
}

void StepsView::place_row(const Rect& area) {
  const auto ranks = static_cast<float>(steps_->ranks());
  const float head = line_height();
  const float room = area.width() / ranks;
  const float width = std::floor(std::clamp(room * 0.62F, 1.0F, scaled(90)));
  const float height = std::max(head, area.height() - 3.5F * head);
  const auto chunks = static_cast<int>(steps_->chunks().size());
  cell_height_ = std::floor(
      std::clamp(height / static_cast<float>(std::max(1, chunks)), head + scaled(2), scaled(34)));
  drawn_chunks_ = std::clamp(static_cast<int>(height / cell_height_), 1, std::max(1, chunks));
  // Arrows to ranks further on bow over the columns.
  const float top = std::floor(area.min.y + 2.5F * head);
  columns_.clear();
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    const float left =
        std::floor(area.min.x + room * static_cast<float>(rank) + (room - width) / 2);
    columns_.push_back(
        {ImVec2(left, top),
         ImVec2(left + width, top + cell_height_ * static_cast<float>(drawn_chunks_))});
  }
}

Rect StepsView::cell_rect(int rank, int chunk) const {
  const Rect& column = columns_[static_cast<std::size_t>(rank)];
  const float top = column.min.y + cell_height_ * static_cast<float>(chunk);
  return {ImVec2(column.min.x, top), ImVec2(column.max.x, top + cell_height_ - 2)};
}

std::optional<StepsView::Cell> StepsView::cell_under(const ImVec2& point) const {
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    for (int chunk = 0; chunk < drawn_chunks_; ++chunk) {
      if (cell_rect(rank, chunk).contains(point)) {
        return Cell{rank, chunk};
      }
    }
  }
  return std::nullopt;
}

const StepMove* StepsView::move_into(const Cell& cell) const {
  if (step() == nullptr) {
    return nullptr;
  }
  const StepMove* found = nullptr;
  for (const StepMove& move : step()->moves) {
    if (move.dst == cell.rank && move.chunk == cell.chunk) {
      found = &move;
    }
  }
  return found;
}

/// The set in words; a bar as long as the part of the ranks that is in it; an edge where it has
/// just come.
void StepsView::paint_cell(const Cell& cell) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const ImFont* font = ui::state().fonts.small;
  const Rect rect = cell_rect(cell.rank, cell.chunk);
  const view::RankSet set = now_.at(cell.rank, cell.chunk);
  const StepMove* move = move_into(cell);
  list.AddRectFilled(rect.min, rect.max, theme.raised);
  const float part = static_cast<float>(std::popcount(set)) / static_cast<float>(steps_->ranks());
  const float bar = std::max(2.0F, std::floor(scaled(3)));
  const bool complete = set == view::all_of(steps_->ranks());
  list.AddRectFilled(ImVec2(rect.min.x, rect.max.y - bar),
                     ImVec2(std::floor(rect.min.x + rect.width() * part), rect.max.y),
                     complete ? theme.good : theme.accent);
  if (move != nullptr) {
    list.AddRect(rect.min,
                 rect.max,
                 move->reduces ? theme.accent : theme.good,
                 0,
                 0,
                 std::max(1.0F, scaled(1.5F)));
  }
  std::string text = view::rank_set_text(set, steps_->ranks());
  ui::tag_rect(fmt::format("steps.cell.{}.{}", cell.rank, cell.chunk), rect.min, rect.max, text);
  if (move != nullptr) {
    text = (move->reduces ? "+ " : "= ") + text;
  }
  const std::string shown = ui::elided(*font, text, rect.width() - 4);
  const float width = ui::text_width(*font, shown);
  ui::text_at(list,
              font,
              ImVec2((rect.min.x + rect.max.x - width) / 2,
                     (rect.min.y + rect.max.y - bar - font->FontSize) / 2),
              theme.text,
              shown);
  if (selected_ && selected_->rank == cell.rank && selected_->chunk == cell.chunk) {
    list.AddRect(rect.min, rect.max, theme.cursor, 0, 0, std::max(2.0F, scaled(2)));
  }
}

void StepsView::paint_column(int rank) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = ui::state().fonts.small;
  const Rect& column = columns_[static_cast<std::size_t>(rank)];
  const float room = column.width() + scaled(22);
  const auto centred = [&](float y, ImU32 colour, const std::string& text) {
    const std::string shown = ui::elided(*font, text, room);
    const float x = (column.min.x + column.max.x - ui::text_width(*font, shown)) / 2;
    ui::text_at(list, font, ImVec2(x, y), colour, shown);
  };
  centred(column.min.y - line_height(), ui::theme().text, fmt::format("rank {}", rank));
  const std::int64_t sent = sent_[static_cast<std::size_t>(rank)];
  centred(column.max.y, ui::theme().muted, ui::trf(S::kStepsSent, bytes_text(sent)));
  ui::tag_rect(fmt::format("steps.sent.{}", rank), column.min, column.max, std::to_string(sent));
  for (int chunk = 0; chunk < drawn_chunks_; ++chunk) {
    paint_cell({rank, chunk});
  }
}

/// From edge to edge, a little to the right of the straight way, so that an arrow back is beside.
void StepsView::paint_arrow(const StepMove& move) const {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ui::Theme& theme = ui::theme();
  const Rect from = cell_rect(move.src, move.chunk);
  const Rect to = cell_rect(move.dst, move.chunk);
  // From side to side; an arrow back lies a little lower.
  const float across = centre_of(to).x - centre_of(from).x;
  const bool right = across >= 0;
  const bool above = std::abs(across) < from.width();
  const float lower = scaled(right ? -3 : 3);
  ImVec2 begin(right ? from.max.x : from.min.x, centre_of(from).y + lower);
  ImVec2 end(right == above ? to.max.x : to.min.x, centre_of(to).y + lower);
  float bow = 0;
  if (in_row_ && std::abs(move.src - move.dst) > 1) {  // over the columns between
    begin = ImVec2(centre_of(from).x, from.min.y);
    end = ImVec2(centre_of(to).x, to.min.y);
    bow = begin.y - columns_.front().min.y + 2.2F * line_height();
  }
  const float x = end.x - begin.x;
  const float y = end.y - begin.y;
  const float length = std::max(1.0F, std::sqrt(x * x + y * y));
  const ImU32 colour = move.reduces ? theme.accent : theme.good;
  const ImVec2 first(begin.x + x * 0.15F, begin.y - bow);
  const ImVec2 second(end.x - x * 0.15F, end.y - bow);
  list.AddBezierCubic(begin,
                      bow == 0 ? begin : first,
                      bow == 0 ? end : second,
                      end,
                      colour,
                      std::max(1.5F, scaled(1.5F)),
                      bow == 0 ? 1 : 24);
  const ImVec2 heading = bow == 0 ? ImVec2(x / length, y / length) : ImVec2(0, 1);
  const float size = scaled(8);
  const ImVec2 base(end.x - heading.x * size, end.y - heading.y * size);
  list.AddTriangleFilled(end,
                         ImVec2(base.x - heading.y * size / 2, base.y + heading.x * size / 2),
                         ImVec2(base.x + heading.y * size / 2, base.y - heading.x * size / 2),
                         colour);
  // What it does and what it carries, on a plate: not by colour alone.
  const ImFont* font = ui::state().fonts.small;
  const std::string text = fmt::format("{}{}", move.reduces ? "+" : "=", move.chunk);
  const float width = ui::text_width(*font, text);
  const float room = bow == 0 ? length - 2 * size : std::abs(x);
  if (room < width) {
    return;
  }
  const ImVec2 middle((begin.x + end.x) / 2, (begin.y + end.y) / 2 - 0.75F * bow);
  const ImVec2 at(std::floor(middle.x - width / 2), std::floor(middle.y - font->FontSize / 2));
  list.AddRectFilled(
      ImVec2(at.x - 2, at.y), ImVec2(at.x + width + 2, at.y + font->FontSize), theme.panel);
  ui::text_at(list, font, at, theme.text, text);
}

void StepsView::paint_arrows() const {
  if (step() == nullptr) {
    return;
  }
  for (const StepMove& move : step()->moves) {
    if (move.chunk >= 0 && move.chunk < drawn_chunks_ && move.src != move.dst) {
      paint_arrow(move);
    }
  }
}

void StepsView::draw_picture() {
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  ImVec2 size = ImGui::GetContentRegionAvail();
  size.y = std::max(size.y, 8 * line_height());
  const Rect area{origin, ImVec2(origin.x + size.x, origin.y + size.y)};
  ImGui::InvisibleButton("##picture", ImVec2(std::max(1.0F, size.x), size.y));
  ui::tag("steps.picture");
  in_row_ = !circle_ || !place_circle(area);
  if (in_row_) {
    place_row(area);
  }
  if (ImGui::IsItemClicked()) {
    selected_ = cell_under(ImGui::GetIO().MousePos);
  }
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    paint_column(rank);
  }
  paint_arrows();
}

// ---- Text and details ---------------------------------------------------------------------------

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

void StepsView::draw_totals() const {
  const ImGuiTableFlags flags =
      ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY;
  if (!ImGui::BeginTable("##totals", 5, flags)) {
    return;
  }
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const S title : {S::kSplitRank,
                        S::kStepsSentNow,
                        S::kStepsSentSoFar,
                        S::kStepsSentAll,
                        S::kStepsReceivedAll}) {
    ImGui::TableSetupColumn(ui::tr(title));
  }
  ImGui::TableHeadersRow();
  for (int rank = 0; rank < steps_->ranks(); ++rank) {
    const std::int64_t now = now_.steps_done == 0 ? 0 : steps_->sent_in(now_.steps_done - 1, rank);
    ImGui::TableNextRow();
    for (const std::string& text : {std::to_string(rank),
                                    bytes_text(now),
                                    bytes_text(sent_[static_cast<std::size_t>(rank)]),
                                    bytes_text(steps_->sent_bytes(rank)),
                                    bytes_text(steps_->received_bytes(rank))}) {
      ImGui::TableNextColumn();
      ImGui::TextUnformatted(text.c_str());
    }
    ui::tag(fmt::format("steps.received.{}", rank), std::to_string(steps_->received_bytes(rank)));
  }
  ImGui::EndTable();
}

void StepsView::draw_details(ViewContext& context) {
  if (!steps_ || selected_) {
    View::draw_details(context);
    return;
  }
  draw_totals();
}

}  // namespace lockstep::views
