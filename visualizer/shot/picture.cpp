#include "visualizer/shot/picture.h"

#include <imgui.h>

#include "core/check.h"
#include "visualizer/shot/rasteriser.h"

namespace lockstep::shot {

bool can_take_picture() {
  const ImDrawData* data = ImGui::GetDrawData();
  return data != nullptr && data->Valid;
}

Image take_picture() {
  LOCKSTEP_CHECK(can_take_picture(), "no frame was drawn");
  ImGuiIO& io = ImGui::GetIO();
  Texture texture;
  unsigned char* alpha = nullptr;
  io.Fonts->GetTexDataAsAlpha8(&alpha, &texture.width, &texture.height);
  texture.alpha = alpha;
  Image image(
      static_cast<int>(io.DisplaySize.x), static_cast<int>(io.DisplaySize.y), {0, 0, 0, 255});
  rasterise(*ImGui::GetDrawData(), texture, image);
  return image;
}

}  // namespace lockstep::shot
