// Fonts: the embedded font in three sizes, and hatch patterns, in one texture. The font holds the
// characters of the string table and no others (scripts/font).
#pragma once

#include <array>
#include <cstddef>

#include <imgui.h>

#include "visualizer/ui/theme.h"

namespace lockstep::ui {

/// The font file's bytes, linked into the program.
extern const unsigned char kFontFile[];
extern const std::size_t kFontFileSize;

/// A pattern's place in the texture, for pieces of at most `size` pixels.
struct HatchTile {
  ImVec2 uv_min;
  ImVec2 uv_max;
  ImVec2 size;
};

struct Fonts {
  ImFont* text = nullptr;   ///< 15 px at scale 1; also ImGui's default
  ImFont* small = nullptr;  ///< 12 px: labels in boxes, axes
  ImFont* large = nullptr;  ///< 22 px: titles, figures of cards
  std::array<HatchTile, kHatchCount> hatches{};
};

/// Builds the atlas anew; whoever has uploaded its texture must do it again.
Fonts build_fonts(ImFontAtlas& atlas, float scale);

}  // namespace lockstep::ui
