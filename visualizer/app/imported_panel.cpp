#include "visualizer/app/imported_panel.h"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <imgui.h>

#include "core/report_text.h"
#include "visualizer/models/text_parts.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;

void muted(const char* text) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", text);
  ImGui::PopStyleColor();
}

void fact(S title, const char* tag, const std::string& value) {
  if (value.empty()) {
    return;
  }
  muted(ui::tr(title));
  ImGui::TextWrapped("%s", value.c_str());
  ui::tag(fmt::format("imported.{}", tag), value);
}

void figure(S title, const char* tag, const std::string& value) {
  muted(ui::tr(title));
  ImGui::PushFont(ui::state().fonts.large);
  ImGui::TextUnformatted(value.c_str());
  ImGui::PopFont();
  ui::tag(fmt::format("metric.{}", tag), value);
  ImGui::Dummy(ImVec2(1, ui::scaled(6)));
}

/// What all ranks have in common, or "".
template <typename Field>
std::string common(const ImportedTrace& trace, Field&& field) {
  std::string value;
  for (const ImportedRank& rank : trace.ranks) {
    const std::string it = field(rank);
    if (!value.empty() && !it.empty() && it != value) {
      return "";
    }
    value = it.empty() ? value : it;
  }
  return value;
}

}  // namespace

void ImportedPanel::use(const DocumentPtr& document) {
  if (document == document_) {
    return;
  }
  document_ = document;
  const ImportedTrace& trace = *document->imported;
  busy_ = view::busy_times(trace, {0, std::max<Nanoseconds>(1, trace.end)});
}

void ImportedPanel::draw_facts(const DocumentPtr& document) {
  const ImportedTrace& trace = *document->imported;
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().accent);
  ImGui::TextWrapped("%s", ui::tr(S::kImportedTitle));
  ImGui::PopStyleColor();
  fact(S::kImportedFile, "file", document->file);
  std::string ranks;
  for (const ImportedRank& rank : trace.ranks) {
    ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", view::name_of(rank));
  }
  fact(S::kImportedRanks, "ranks", ranks);
  fact(S::kImportedWorld, "world", common(trace, [](const ImportedRank& it) {
         return it.world_size ? std::to_string(*it.world_size) : "";
       }));
  fact(S::kImportedBackend, "backend", common(trace, [&](const ImportedRank& it) {
         return trace.names.text(it.backend);
       }));
  fact(S::kImportedDevice, "device", common(trace, [&](const ImportedRank& it) {
         return trace.names.text(it.device);
       }));
  if (!trace.notes.empty()) {
    muted(ui::tr(S::kImportedNotes));
    for (const std::string& note : trace.notes) {
      ImGui::TextWrapped("%s", note.c_str());
    }
  }
  ImGui::Dummy(ImVec2(1, ui::scaled(8)));
  muted(ui::tr(S::kImportedNoSettings));
}

void ImportedPanel::draw_figures(const DocumentPtr& document) {
  use(document);
  const ImportedTrace& trace = *document->imported;
  muted(ui::tr(S::kImportedSource));
  ui::tag("source", "imported");
  figure(S::kImportedLength, "traced", view::time_text(trace.end, true));
  std::size_t spans = 0;
  for (const ImportedRank& rank : trace.ranks) {
    for (const ImportedLane& lane : rank.lanes) {
      spans += lane.spans.size();
    }
  }
  figure(S::kImportedSpans, "spans", grouped(static_cast<std::int64_t>(spans)));
  const auto mean = [&](Nanoseconds view::ImportedBusy::*time) {
    double sum = 0;
    for (const view::ImportedBusy& it : busy_) {
      sum += static_cast<double>(it.*time);
    }
    const double whole = static_cast<double>(std::max<Nanoseconds>(1, trace.end)) *
                         static_cast<double>(busy_.size());
    return view::percent_text(sum / std::max(1.0, whole));
  };
  const auto any = [&](bool view::ImportedBusy::*known) {
    return std::any_of(busy_.begin(), busy_.end(), [&](const auto& it) { return it.*known; });
  };
  const bool kernels = any(&view::ImportedBusy::has_kernels);
  const bool transfers = any(&view::ImportedBusy::has_transfers);
  if (kernels) {
    figure(S::kImportedKernels, "kernels", mean(&view::ImportedBusy::kernels));
  }
  if (transfers) {
    figure(S::kImportedTransfers, "transfers", mean(&view::ImportedBusy::transfers));
  }
  if (kernels && transfers) {
    figure(S::kImportedExposed, "transfers.exposed", mean(&view::ImportedBusy::exposed));
  }
  figure(S::kImportedHost, "host", mean(&view::ImportedBusy::host));
  muted(ui::tr(S::kImportedUnknown));
}

}  // namespace lockstep::app
