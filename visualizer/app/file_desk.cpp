#include "visualizer/app/file_desk.h"

#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <imgui.h>

#include "visualizer/shot/picture.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;
namespace fs = std::filesystem;

constexpr int kFadeFrames = 12;      ///< until nothing of the dialog is left on the window
constexpr double kSaidSeconds = 12;  ///< that a message stays
constexpr double kPatience = 1;      ///< seconds of work before it is spoken of

}  // namespace

FileDesk::FileDesk(Session& session, Dialogs& dialogs) : session_(session), dialogs_(dialogs) {
  dialogs_.on_save_as = [this](const std::string& path) { save_to(path); };
  dialogs_.on_unsaved = [this](Unsaved answer) { answered(answer); };
}

std::string FileDesk::folder() const {
  std::string file = session_.file();
  if (file.empty() && session_.document() != nullptr) {
    file = session_.document()->file;
  }
  std::error_code error;
  const fs::path parent = file.empty() ? fs::current_path(error) : fs::path(file).parent_path();
  return parent.string();
}

// ---- Saving -------------------------------------------------------------------------------------

void FileDesk::save() {
  then_ = nullptr;
  save_or_ask();
}

void FileDesk::save_or_ask() {
  if (session_.file().empty()) {
    ask_path();
  } else {
    save_to(session_.file());
  }
}

void FileDesk::save_as() {
  then_ = nullptr;
  ask_path();
}

void FileDesk::ask_path() {
  const std::string name =
      fs::path(session_.file().empty() ? session_.name() : session_.file()).stem().string();
  dialogs_.show_save_as((fs::path(folder()) / (name + ".scenario.json")).string());
}

void FileDesk::save_to(const std::string& path) {
  const std::function<void()> then = std::exchange(then_, nullptr);
  try {
    session_.save(path);
  } catch (const std::exception& error) {
    dialogs_.show_error(error.what());
    return;
  }
  if (session_.on_opened) {
    session_.on_opened(path);
  }
  say(ui::trf(S::kSavedTo, path));
  if (then) {
    then();
  }
}

void FileDesk::guard(std::function<void()> then) {
  if (!session_.unsaved()) {
    then();
    return;
  }
  then_ = std::move(then);
  dialogs_.show_unsaved(session_.name());
  ui::state().tags.want_focus("unsaved.save");
}

void FileDesk::answered(Unsaved answer) {
  const std::function<void()> then = std::exchange(then_, nullptr);
  if (answer == Unsaved::kDiscard) {
    then();
  } else if (answer == Unsaved::kSave) {
    then_ = then;
    save_or_ask();
  }
}

// ---- Exporting ----------------------------------------------------------------------------------

void FileDesk::write(const std::string& path, ExportErrand::Write write) {
  errand_ = std::make_shared<ExportErrand>(path, std::move(write));
  since_ = ImGui::GetTime();
  said_.clear();
  session_.add(errand_);
}

void FileDesk::write_picture(const std::string& path) {
  picture_ = path;
  picture_frames_ = kFadeFrames;
}

void FileDesk::before_frame() {
  if (picture_.empty() || dialogs_.current() != Dialog::kNone || --picture_frames_ > 0 ||
      !shot::can_take_picture()) {
    return;
  }
  const std::string path = std::exchange(picture_, {});
  write(path,
        [path, image = shot::take_picture()](const StopCheck&) { shot::save_png(path, image); });
}

void FileDesk::finish_export() {
  if (errand_ == nullptr || !errand_->done()) {
    return;
  }
  const std::shared_ptr<ExportErrand> done = std::exchange(errand_, nullptr);
  if (const std::string error = done->error(); !error.empty()) {
    dialogs_.show_error(error);
  } else {
    say(ui::trf(S::kExported, done->path()));
  }
}

// ---- The line -----------------------------------------------------------------------------------

void FileDesk::say(std::string text) {
  said_ = std::move(text);
  said_at_ = ImGui::GetTime();
}

void FileDesk::poll() {
  finish_export();
  if (ImGui::GetTime() - said_at_ > kSaidSeconds) {
    said_.clear();
  }
  make_status();
}

void FileDesk::make_status() {
  const double seconds = session_.seconds();
  can_cancel_ = true;
  if (seconds >= kPatience) {
    const int whole = static_cast<int>(seconds);
    status_ = session_.opening().empty() ? ui::trf(S::kSimulatingFor, whole)
                                         : ui::trf(S::kOpeningFor, session_.opening(), whole);
  } else if (errand_ != nullptr && ImGui::GetTime() - since_ >= kPatience) {
    status_ = ui::trf(S::kExporting, errand_->path());
  } else {
    can_cancel_ = false;
    status_ = !said_.empty() ? said_ : session_.cancelled() ? ui::tr(S::kCancelled) : "";
  }
}

void FileDesk::cancel() {
  session_.cancel();
  errand_.reset();
  picture_.clear();
}

bool FileDesk::escape() {
  if (session_.seconds() > 0 || errand_ != nullptr) {
    cancel();
    return true;
  }
  const bool said = !said_.empty();
  said_.clear();
  return said;
}

}  // namespace lockstep::app
