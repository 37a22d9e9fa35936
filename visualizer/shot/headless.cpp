#include "visualizer/shot/headless.h"

#include <cfloat>
#include <utility>

#include "visualizer/shot/picture.h"
#include "visualizer/ui/compat.h"

namespace lockstep::shot {

Headless::Headless(int width, int height, app::Settings settings)
    : context_(ImGui::CreateContext()) {
  ImGui::SetCurrentContext(context_.get());
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DeltaTime = 1.0F / 60.0F;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigInputTextCursorBlink = false;
  io.MousePos = ImVec2(-FLT_MAX, -FLT_MAX);
  io.ClipboardUserData = &clipboard_;
  io.SetClipboardTextFn = [](void* user, const char* text) {
    *static_cast<std::string*>(user) = text;
  };
  io.GetClipboardTextFn = [](void* user) -> const char* {
    return static_cast<std::string*>(user)->c_str();
  };
  ui::map_keys(io);
  resize(width, height);
  app_ = std::make_unique<app::App>(std::move(settings));
}

Headless::~Headless() {
  app_.reset();
}

void Headless::resize(int width, int height) {
  ImGui::GetIO().DisplaySize = ImVec2(static_cast<float>(width), static_cast<float>(height));
}

void Headless::frame() {
  app_->prepare();
  ImGui::NewFrame();
  app_->frame();
  ImGui::Render();
}

void Headless::frames(int count) {
  for (int i = 0; i < count; ++i) {
    frame();
  }
}

void Headless::settle() {
  // What was opened makes views ask for more in the frame after it.
  do {
    frame();
    app_->session().settle();
    frames(2);
  } while (app_->session().working());
}

int Headless::quads() const {
  const ImDrawData* data = ImGui::GetDrawData();
  LOCKSTEP_CHECK(data != nullptr && data->Valid, "no frame was drawn");
  return data->TotalVtxCount / 4;
}

Image Headless::picture() const {
  return take_picture();
}

}  // namespace lockstep::shot
