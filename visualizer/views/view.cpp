#include "visualizer/views/view.h"

#include <imgui.h>

#include "visualizer/ui/state.h"

namespace lockstep::views {

std::string json_text(View& view, const ViewContext& context) {
  JsonWriter json;
  json.begin_object();
  json.field("schema_version", 1);
  json.field("view", view.id());
  if (context.document->imported == nullptr && view.is_of_one_step()) {
    const TraceStep& step = context.document->shown_step();
    json.field("step_time_ns", step.end - step.begin);
  }
  if (!view.json(json, context)) {
    return "";
  }
  json.end_object();
  return json.text();
}

void View::draw_details(ViewContext& context) {
  const view::DetailLines lines = details(context);
  if (lines.empty()) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
    ImGui::TextWrapped("%s", ui::tr(ui::S::kNoSelection));
    ImGui::PopStyleColor();
    return;
  }
  draw_detail_lines(lines);
}

void draw_detail_lines(const view::DetailLines& lines) {
  if (!ImGui::BeginTable("##details", 2, ImGuiTableFlags_SizingFixedFit)) {
    return;
  }
  ImGui::TableSetupColumn("##name");
  ImGui::TableSetupColumn("##value", ImGuiTableColumnFlags_WidthStretch);
  for (const auto& [name, value] : lines) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const std::string_view shown = ui::term(name);
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
    ImGui::TextUnformatted(shown.data(), shown.data() + shown.size());
    ImGui::PopStyleColor();
    ImGui::TableNextColumn();
    ImGui::TextWrapped("%s", value.c_str());
    ui::tag("details." + name, value);
  }
  ImGui::EndTable();
}

}  // namespace lockstep::views
