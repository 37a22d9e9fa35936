#include "visualizer/app/export_dialog.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>

#include "visualizer/ui/compat.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {

using ui::S;

void ExportDialog::start(ExportOffer offer) {
  offer_ = std::move(offer);
  if (!offer_.reasons[chosen_].empty()) {
    chosen_ = 0;
  }
  prompt_.start(export_path(export_kinds()[chosen_], offer_.folder, offer_.name, offer_.view));
}

/// Where it goes was perhaps changed: the folder stays.
void ExportDialog::choose(std::size_t kind) {
  if (!offer_.reasons[kind].empty()) {
    return;
  }
  chosen_ = kind;
  const std::string folder = std::filesystem::path(prompt_.path()).parent_path().string();
  prompt_.start(export_path(export_kinds()[kind], folder, offer_.name, offer_.view));
}

std::optional<ExportDialog::Wish> ExportDialog::draw() {
  const std::span<const ExportKind> kinds = export_kinds();
  const std::size_t before = chosen_;
  const auto step = [&](std::size_t by) {
    std::size_t next = chosen_;
    do {
      next = (next + by) % kinds.size();
    } while (!offer_.reasons[next].empty());
    choose(next);
  };
  if (ui::pressed(ui::Key::kDown)) {
    step(1);
  } else if (ui::pressed(ui::Key::kUp)) {
    step(kinds.size() - 1);
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool possible = offer_.reasons[i].empty();
    ImGui::BeginDisabled(!possible);
    ImGui::PushStyleColor(ImGuiCol_Text, possible ? ui::theme().text : ui::theme().disabled);
    std::string title = ui::tr(kinds[i].title);
    if (!possible) {
      title += fmt::format(": {}", offer_.reasons[i]);
    }
    if (ImGui::RadioButton(fmt::format("{}##{}", title, kinds[i].id).c_str(), i == chosen_) &&
        chosen_ == before) {
      choose(i);
    }
    ImGui::PopStyleColor();
    ImGui::EndDisabled();
    ui::tag(fmt::format("export.{}", kinds[i].id), offer_.reasons[i], possible);
  }
  ImGui::Dummy(ImVec2(1, ui::scaled(6)));
  if (prompt_.draw("export", ui::tr(S::kExport))) {
    return Wish{kinds[chosen_].form, prompt_.path()};
  }
  return std::nullopt;
}

}  // namespace lockstep::app
