#include "visualizer/app/shell.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/app/metric_cards.h"
#include "visualizer/app/start_screen.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::Rect;
using ui::S;
using ui::scaled;

constexpr float kGap = 4;

}  // namespace

Shell::Shell(Session& session, Settings& settings)
    : session_(session),
      settings_(settings),
      views_(views::make_views()),
      desk_(session, dialogs_) {
  dialogs_.on_open = [this](const std::string& path) {
    if (opens_baseline_) {
      session_.open_baseline(path);
    } else {
      open(path);
    }
  };
  dialogs_.on_export = [this](const ExportDialog::Wish& wish) { carry_out(wish); };
  session_.on_record = [this] { show_view("steps"); };
}

void Shell::show_open(bool baseline) {
  opens_baseline_ = baseline;
  dialogs_.show(Dialog::kOpen);
}

bool Shell::show_view(std::string_view id) {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i]->id() == id) {
      show_view_at(i);
      return true;
    }
  }
  return false;
}

void Shell::show_view_at(std::size_t index) {
  if (index != view_) {
    views_[view_]->hide();
  }
  view_ = index;
}

Shell::Places Shell::places() const {
  ImVec2 size = ImGui::GetIO().DisplaySize;
  Places at;
  if (desk_.has_status()) {
    const float above = std::floor(size.y - ImGui::GetFrameHeight() - scaled(10));
    at.status = {ImVec2(0, above), size};
    size.y = above;
  }
  const float gap = std::floor(scaled(kGap));
  const float top = std::floor(ImGui::GetFrameHeight() + scaled(14));
  const float left = std::floor(size.x * settings_.left);
  const float right = std::floor(size.x * (1 - settings_.right));
  const float bottom = std::floor(size.y * (1 - settings_.bottom));
  at.top = {ImVec2(0, 0), ImVec2(size.x, top)};
  at.left = {ImVec2(0, top + gap), ImVec2(left, size.y)};
  at.centre = {ImVec2(left + gap, top + gap), ImVec2(right - gap, bottom - gap)};
  at.bottom = {ImVec2(left + gap, bottom), ImVec2(right - gap, size.y)};
  at.right = {ImVec2(right, top + gap), ImVec2(size.x, size.y)};
  return at;
}

bool Shell::begin_panel(const char* name, const Rect& place, int flags) const {
  ImGui::SetNextWindowPos(place.min);
  ImGui::SetNextWindowSize(ImVec2(std::max(1.0F, place.width()), std::max(1.0F, place.height())));
  return ImGui::Begin(name,
                      nullptr,
                      ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                          ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                          ImGuiWindowFlags_NoBringToFrontOnFocus | ImGuiWindowFlags_NoCollapse |
                          flags);
}

// ---- Panels -------------------------------------------------------------------------------------

bool Shell::can_draw_view() const {
  return session_.document() != nullptr && !(session_.is_imported() && views_[view_]->needs_plan());
}

/// Arrows belong to the view; Tab hands them to its controls until Esc, a click or another panel.
/// True when it just did.
bool Shell::begins_to_walk() {
  const std::string_view focused = ui::focused_window();
  const bool elsewhere =
      focused != kCentre && std::find(kPanels.begin(), kPanels.end(), focused) != kPanels.end();
  if (elsewhere || ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    walks_ = false;
  }
  const bool begins = !walks_ && focused == kCentre && dialogs_.current() == Dialog::kNone &&
                      !ui::text_is_edited() && ui::chord(ui::Key::kTab, ui::kPlain);
  walks_ = walks_ || begins;
  return begins;
}

void Shell::centre(const Rect& place) {
  const bool begins = begins_to_walk();
  begin_panel(kCentre,
              place,
              (walks_ ? ImGuiWindowFlags_None : ImGuiWindowFlags_NoNavInputs) |
                  ImGuiWindowFlags_NoScrollWithMouse);
  if (begins) {
    ui::focus_first_item();
  }
  views::View& view = *views_[view_];
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", ui::tr(view.about()));
  ImGui::PopStyleColor();
  if (!can_draw_view()) {
    const S text = session_.is_imported()        ? S::kEmptyImported
                   : session_.cancelled()        ? S::kCancelled
                   : session_.problems().empty() ? S::kWorking
                                                 : S::kEmptyView;
    ImGui::TextWrapped("%s", ui::tr(text));
    ui::tag("view.empty", ui::tr(text));
  } else {
    const bool focused = std::string_view(ui::focused_window()) == kCentre;
    const bool hovered = ImGui::IsWindowHovered(ImGuiHoveredFlags_ChildWindows |
                                                ImGuiHoveredFlags_AllowWhenBlockedByActiveItem) &&
                         !ImGui::GetIO().NavVisible;
    const bool has_keys = dialogs_.current() == Dialog::kNone && !ui::text_is_edited() && !walks_ &&
                          (focused || hovered);
    views::ViewContext context{session_, session_.document()};
    view.draw(context, has_keys);
  }
  ImGui::End();
}

void Shell::bottom(const Rect& place) {
  begin_panel(kBottom, place);
  if (can_draw_view()) {
    views::ViewContext context{session_, session_.document()};
    views_[view_]->draw_details(context);
  }
  ImGui::End();
}

void Shell::splitter(const char* id, const Rect& place, bool vertical, float& share, float sign) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, ui::theme().background);
  begin_panel(
      id,
      place,
      ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::InvisibleButton("##grip",
                         ImVec2(std::max(1.0F, place.width()), std::max(1.0F, place.height())));
  ui::tag(id + 2);
  if (ImGui::IsItemHovered() || ImGui::IsItemActive()) {
    ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    ImGui::GetWindowDrawList()->AddRectFilled(place.min, place.max, ui::theme().accent);
  }
  if (ImGui::IsItemActive()) {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    const ImVec2 moved = ImGui::GetIO().MouseDelta;
    const float part = vertical ? moved.x / size.x : moved.y / size.y;
    share = std::clamp(share + sign * part, 0.08F, 0.5F);
  }
  ImGui::End();
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(2);
}

void Shell::splitters(const Places& at) {
  const float gap = std::floor(scaled(kGap));
  splitter("##split.left",
           {ImVec2(at.left.max.x, at.left.min.y), ImVec2(at.left.max.x + gap, at.left.max.y)},
           true,
           settings_.left,
           1);
  splitter("##split.right",
           {ImVec2(at.right.min.x - gap, at.right.min.y), ImVec2(at.right.min.x, at.right.max.y)},
           true,
           settings_.right,
           -1);
  splitter("##split.bottom",
           {ImVec2(at.centre.min.x, at.centre.max.y), ImVec2(at.centre.max.x, at.bottom.min.y)},
           false,
           settings_.bottom,
           -1);
}

void Shell::working_screen(const Places& at) {
  begin_panel(kLeft, at.left);
  if (session_.is_imported()) {
    imported_panel_.draw_facts(session_.document());
  } else {
    scenario_panel_.draw(session_);
  }
  ImGui::End();
  begin_panel(kRight, at.right);
  if (session_.is_imported()) {
    imported_panel_.draw_figures(session_.document());
  } else {
    draw_metric_cards(session_);
  }
  ImGui::End();
  bottom(at.bottom);
  centre(at.centre);
  splitters(at);
}

void Shell::draw() {
  session_.poll();
  desk_.poll();
  session_.playing = false;  // until the view that is shown says so
  if (!session_.error().empty()) {
    dialogs_.show_error(session_.error());
    session_.dismiss_error();
  }
  if (std::exchange(session_.asks_for_baseline, false)) {
    show_open(true);
  }
  const std::vector<Command> all = commands();
  run_keys(all);
  const Places at = places();
  ImGui::GetBackgroundDrawList()->AddRectFilled(
      ImVec2(0, 0), ImGui::GetIO().DisplaySize, ui::theme().background);
  top_bar(at.top);
  status_line(at.status);
  const bool working = this->working();
  if (working) {
    working_screen(at);
  } else {
    const float gap = std::floor(scaled(kGap));
    begin_panel(kHome, {ImVec2(0, at.top.max.y + gap), ImVec2(at.top.max.x, at.left.max.y)});
    draw_start_screen(
        session_,
        settings_,
        [this](const std::string& path) { open(path); },
        [this] { show_open(false); },
        [this] { session_.leave_home(); });
    ImGui::End();
  }
  if (was_working_ != working) {
    ImGui::SetWindowFocus(working ? kCentre : kHome);
  }
  was_working_ = working;
  dialogs_.draw(all, working ? views_[view_]->keys() : std::vector<views::KeyHelp>{});
}

// ---- Files --------------------------------------------------------------------------------------

void Shell::before_frame() {
  desk_.before_frame();
}

void Shell::open(const std::string& path) {
  desk_.guard([this, path] { session_.open(path); });
}

void Shell::quit() {
  desk_.guard([this] { quit_ = true; });
}

std::string Shell::title() const {
  const std::string name = session_.name();
  return name.empty()
             ? ui::tr(S::kProgram)
             : fmt::format("{}{} - {}", name, session_.unsaved() ? " *" : "", ui::tr(S::kProgram));
}

ExportOffer Shell::export_offer() {
  views::View& view = *views_[view_];
  ExportOffer offer{desk_.folder(), session_.name(), view.id(), {}};
  const bool planned = session_.document() != nullptr && !session_.is_imported();
  for (const ExportKind& kind : export_kinds()) {
    std::string reason;
    if (kind.needs_plan && !planned) {
      reason = ui::tr(session_.is_imported() ? S::kExportNoPlan : S::kExportNothing);
    } else if (kind.form == ExportForm::kSvg && !view.has_svg()) {
      reason = ui::tr(S::kExportNoSvg);
    } else if (kind.form == ExportForm::kActionsCsv &&
               view.actions_csv({session_, session_.document()}).empty()) {
      reason = ui::tr(S::kExportNoPipeline);
    } else if (kind.form == ExportForm::kViewJson && !can_draw_view()) {
      reason = ui::tr(S::kExportNoFigures);
    }
    offer.reasons.push_back(std::move(reason));
  }
  return offer;
}

void Shell::show_export() {
  dialogs_.show_export(export_offer());
}

void Shell::carry_out(const ExportDialog::Wish& wish) {
  views::View& view = *views_[view_];
  const DocumentPtr document = session_.document();
  if (wish.form == ExportForm::kPng) {
    desk_.write_picture(wish.path);
  } else if (document == nullptr) {
    dialogs_.show_error(ui::tr(S::kExportNothing));
  } else if (wish.form == ExportForm::kSvg || wish.form == ExportForm::kActionsCsv) {
    const views::ViewContext context{session_, document};
    const bool svg = wish.form == ExportForm::kSvg;
    desk_.write(wish.path,
                text_writer(svg ? view.svg(context) : view.actions_csv(context), wish.path));
  } else if (wish.form == ExportForm::kViewJson) {
    const std::string text = views::json_text(view, {session_, document});
    if (text.empty()) {
      dialogs_.show_error(ui::tr(S::kExportNoFigures));
    } else {
      desk_.write(wish.path, text_writer(text, wish.path));
    }
  } else {
    desk_.write(wish.path, trace_writer(wish.form, document, wish.path));
  }
}

}  // namespace lockstep::app
