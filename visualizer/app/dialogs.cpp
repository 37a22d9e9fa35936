#include "visualizer/app/dialogs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <imgui.h>
#include <imgui_stdlib.h>

#include "visualizer/app/glossary.h"
#include "visualizer/ui/compat.h"
#include "visualizer/ui/draw.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;
namespace fs = std::filesystem;

constexpr const char* kName = "##dialog";
constexpr std::size_t kMostEntries = 500;

struct Entry {
  std::string name;
  bool folder = false;
};

/// Folders first, both by name; hidden ones left out.
std::vector<Entry> entries_of(const fs::path& folder) {
  std::vector<Entry> entries;
  std::error_code error;
  for (auto it =
           fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && it != fs::directory_iterator() && entries.size() < kMostEntries;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with('.')) {
      std::error_code ignored;
      entries.push_back({name, it->is_directory(ignored)});
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(!a.folder, a.name) < std::pair(!b.folder, b.name);
  });
  return entries;
}

void two_columns(const std::string& left, const std::string& right) {
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().accent);
  ImGui::TextUnformatted(left.c_str());
  ImGui::PopStyleColor();
  ImGui::TableNextColumn();
  ImGui::TextWrapped("%s", right.c_str());
}

/// Only lines that are seen are drawn.
void fixed_lines(std::string_view text) {
  const ImFont& font = *ui::state().fonts.text;
  const float line_height = std::ceil(font.FontSize * 1.2F);
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  std::size_t longest = 0;
  ImVec2 at = origin;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    longest = std::max(longest, line.size());
    const ImVec2 end(at.x + ImGui::GetWindowWidth(), at.y + line_height);
    if (ImGui::IsRectVisible(ImVec2(ImGui::GetWindowPos().x, at.y), end)) {
      ui::fixed_text(*ImGui::GetWindowDrawList(), font, at, ui::theme().text, line);
    }
    at.y += line_height;
  }
  ImGui::Dummy(ImVec2(static_cast<float>(longest) * ui::fixed_width(font), at.y - origin.y));
}

bool begin_list(const char* id) {
  const ImGuiTableFlags flags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
  const ImVec2 room = ImGui::GetContentRegionAvail();
  if (!ImGui::BeginTable(id, 2, flags, ImVec2(0, room.y - ImGui::GetFrameHeightWithSpacing()))) {
    return false;
  }
  ImGui::TableSetupColumn("##key");
  ImGui::TableSetupColumn("##meaning", ImGuiTableColumnFlags_WidthStretch);
  return true;
}

}  // namespace

void Dialogs::show(Dialog dialog) {
  current_ = dialog;
  appearing_ = true;
  chosen_ = 0;
  input_.clear();
  if (dialog == Dialog::kOpen) {
    std::error_code error;
    input_ = fs::current_path(error).string() + "/";
  }
}

void Dialogs::show_error(const std::string& message) {
  message_ = message;
  show(Dialog::kError);
}

void Dialogs::show_text(std::string title, std::string text) {
  title_ = std::move(title);
  text_ = std::move(text);
  show(Dialog::kText);
}

void Dialogs::show_export(ExportOffer offer) {
  export_.start(std::move(offer));
  show(Dialog::kExport);
}

void Dialogs::show_save_as(std::string path) {
  save_.start(std::move(path));
  show(Dialog::kSaveAs);
}

void Dialogs::show_unsaved(std::string name) {
  message_ = std::move(name);
  show(Dialog::kUnsaved);
}

void Dialogs::title(const std::string& title) {
  ImGui::PushFont(ui::state().fonts.large);
  ImGui::TextUnformatted(title.c_str());
  ImGui::PopFont();
  ImGui::Separator();
}

void Dialogs::draw(const std::vector<Command>& commands,
                   const std::vector<views::KeyHelp>& view_keys) {
  if (current_ == Dialog::kNone) {
    return;
  }
  if (!ImGui::IsPopupOpen(kName)) {
    ImGui::OpenPopup(kName);
  }
  const ImVec2 screen = ImGui::GetIO().DisplaySize;
  const bool small =
      current_ == Dialog::kError || current_ == Dialog::kSaveAs || current_ == Dialog::kUnsaved;
  const ImVec2 size(std::min(screen.x * 0.94F, ui::scaled(small ? 560 : 760)),
                    std::min(screen.y * 0.9F, ui::scaled(small ? 220 : 560)));
  ImGui::SetNextWindowPos(ImVec2(screen.x / 2, screen.y / 2), ImGuiCond_Always, ImVec2(0.5F, 0.5F));
  ImGui::SetNextWindowSize(size);
  const ImGuiWindowFlags flags = ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoResize |
                                 ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
  if (ImGui::BeginPopupModal(kName, nullptr, flags)) {
    contents(commands, view_keys);
    if (ui::pressed(ui::Key::kEscape, false)) {
      if (current_ == Dialog::kUnsaved) {
        on_unsaved(Unsaved::kCancel);
      }
      close();
    }
    if (current_ == Dialog::kNone) {
      ImGui::CloseCurrentPopup();
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
}

void Dialogs::contents(const std::vector<Command>& commands,
                       const std::vector<views::KeyHelp>& view_keys) {
  const bool first = std::exchange(appearing_, false);
  switch (current_) {
    case Dialog::kError:
      error();
      break;
    case Dialog::kKeys:
      keys(commands, view_keys);
      break;
    case Dialog::kGlossary:
      glossary();
      break;
    case Dialog::kPalette:
    case Dialog::kOpen:
      title(ui::tr(current_ == Dialog::kOpen ? S::kOpenTitle : S::kPalette));
      if (first) {
        ui::focus_next_item();
      }
      if (current_ == Dialog::kOpen) {
        open_path();
      } else {
        palette(commands);
      }
      break;
    case Dialog::kText:
      text();
      break;
    case Dialog::kExport:
      export_what();
      break;
    case Dialog::kSaveAs:
      save_as();
      break;
    case Dialog::kUnsaved:
      unsaved();
      break;
    case Dialog::kNone:
      break;
  }
  const bool own = current_ == Dialog::kNone || current_ == Dialog::kPalette ||
                   current_ == Dialog::kOpen || current_ == Dialog::kUnsaved;
  if (!own) {
    if (ImGui::Button(ui::tr(S::kClose))) {
      close();
    }
    ui::tag("dialog.close");
  }
}

void Dialogs::error() {
  title(ui::tr(S::kErrorTitle));
  ImGui::TextWrapped("%s", message_.c_str());
  ui::tag("dialog.error", message_);
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s", ui::tr(S::kErrorGoOn));
  ImGui::PopStyleColor();
}

void Dialogs::keys(const std::vector<Command>& commands,
                   const std::vector<views::KeyHelp>& view_keys) {
  title(ui::tr(S::kKeys));
  if (!begin_list("##keys")) {
    return;
  }
  for (const views::KeyHelp& key : view_keys) {
    two_columns(key.keys, ui::tr(key.meaning));
  }
  for (const Command& command : commands) {
    if (!command.keys.empty()) {
      two_columns(command.keys, command.title);
    }
  }
  two_columns("F6, Shift+F6", ui::tr(S::kKeyPanels));
  two_columns("Tab", ui::tr(S::kKeyWalkControls));
  two_columns("\xE2\x86\x90 \xE2\x86\x92 \xE2\x86\x91 \xE2\x86\x93", ui::tr(S::kKeyArrows));
  two_columns("Esc", ui::tr(S::kKeyEscape));
  ImGui::EndTable();
}

void Dialogs::glossary() {
  title(ui::tr(S::kGlossary));
  if (!begin_list("##glossary")) {
    return;
  }
  for (const auto& [term, meaning] : app::glossary()) {
    two_columns(ui::tr(term), ui::tr(meaning));
  }
  ImGui::EndTable();
}

void Dialogs::palette(const std::vector<Command>& commands) {
  ImGui::SetNextItemWidth(-1);
  const std::size_t before = chosen_;
  const auto choose = [](ImGuiInputTextCallbackData* data) {
    auto& chosen = *static_cast<std::size_t*>(data->UserData);
    chosen = data->EventKey == ImGuiKey_UpArrow ? std::max<std::size_t>(chosen, 1) - 1 : chosen + 1;
    return 0;
  };
  // With a history the line keeps the arrows; else they would leave it for another item.
  const bool enter = ImGui::InputTextWithHint(
      "##palette",
      ui::tr(S::kPaletteHint),
      &input_,
      ImGuiInputTextFlags_EnterReturnsTrue | ImGuiInputTextFlags_CallbackHistory,
      choose,
      &chosen_);
  ui::tag("palette", input_);
  const std::vector<const Command*> found = matching(commands, input_);
  chosen_ = found.empty() ? 0 : std::min(chosen_, found.size() - 1);
  const Command* run = enter && !found.empty() ? found[chosen_] : nullptr;
  ImGui::BeginChild("##found");
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::string line = found[i]->title + "##" + found[i]->id;
    if (ImGui::Selectable(line.c_str(), i == chosen_)) {
      run = found[i];
    }
    ui::tag("palette." + found[i]->id);
    if (i == chosen_ && chosen_ != before) {
      ImGui::SetScrollHereY();
    }
    if (!found[i]->keys.empty()) {
      const float width = ui::text_width(*ui::state().fonts.text, found[i]->keys);
      ImGui::SameLine(ImGui::GetWindowContentRegionMax().x - width - ui::scaled(8));
      ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
      ImGui::TextUnformatted(found[i]->keys.c_str());
      ImGui::PopStyleColor();
    }
  }
  if (found.empty()) {
    ImGui::TextUnformatted(ui::tr(S::kNothingFound));
  }
  ImGui::EndChild();
  if (run != nullptr) {
    close();
    run->run();
  }
}

void Dialogs::open_path() {
  ImGui::SetNextItemWidth(-ui::scaled(90));
  const bool enter = ImGui::InputTextWithHint(
      "##path", ui::tr(S::kPath), &input_, ImGuiInputTextFlags_EnterReturnsTrue);
  ui::tag("open.path", input_);
  ImGui::SameLine();
  const bool hit = ImGui::Button(ui::tr(S::kOpen), ImVec2(-1, 0));
  ui::tag("open.open");
  folder();
  if ((enter || hit) && !input_.empty()) {
    const std::string path = input_;
    close();
    on_open(path);
  }
}

void Dialogs::folder() {
  const fs::path typed(input_);
  std::error_code error;
  const fs::path folder = fs::is_directory(typed, error) ? typed : typed.parent_path();
  ui::begin_list("##folder");
  if (ImGui::Selectable(ui::tr(S::kParentFolder))) {
    const fs::path whole = folder.has_filename() ? folder : folder.parent_path();
    input_ = (whole.parent_path() / "").string();
  }
  for (const Entry& entry : entries_of(folder)) {
    const std::string shown = entry.name + (entry.folder ? "/" : "");
    if (ImGui::Selectable(shown.c_str())) {
      input_ = (folder / entry.name).string() + (entry.folder ? "/" : "");
    }
    ui::tag("open.entry." + entry.name);
  }
  ImGui::EndChild();
}

void Dialogs::text() {
  title(title_);
  if (ImGui::Button(ui::tr(S::kCopy))) {
    ImGui::SetClipboardText(text_.c_str());
  }
  ui::tag("text.copy");
  const ImVec2 room = ImGui::GetContentRegionAvail();
  ImGui::BeginChild("##text",
                    ImVec2(0, room.y - ImGui::GetFrameHeightWithSpacing()),
                    false,
                    ImGuiWindowFlags_HorizontalScrollbar);
  fixed_lines(text_);
  ImGui::EndChild();
  ui::tag("dialog.text", text_);
}

void Dialogs::export_what() {
  title(ui::tr(S::kExportTitle));
  if (const std::optional<ExportDialog::Wish> wish = export_.draw()) {
    close();
    on_export(*wish);
  }
}

void Dialogs::save_as() {
  title(ui::tr(S::kSaveTitle));
  if (save_.draw("save", ui::tr(S::kSave))) {
    const std::string path = save_.path();
    close();
    on_save_as(path);
  }
}

void Dialogs::unsaved() {
  title(ui::tr(S::kUnsavedTitle));
  ImGui::TextWrapped("%s", ui::trf(S::kUnsavedText, message_).c_str());
  ui::tag("dialog.unsaved", message_);
  constexpr std::array<std::pair<S, const char*>, 3> kAnswers{{{S::kSave, "unsaved.save"},
                                                               {S::kDiscard, "unsaved.discard"},
                                                               {S::kCancel, "unsaved.cancel"}}};
  for (std::size_t i = 0; i < kAnswers.size(); ++i) {
    ui::focus_if_wanted(kAnswers[i].second);
    if (i > 0) {
      ImGui::SameLine();
    }
    const bool hit = ImGui::Button(ui::tr(kAnswers[i].first));
    ui::tag(kAnswers[i].second);
    if (hit) {
      close();
      on_unsaved(static_cast<Unsaved>(i));
      return;
    }
  }
}

}  // namespace lockstep::app
