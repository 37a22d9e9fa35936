#include "visualizer/ui/fonts.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace lockstep::ui {
namespace {

constexpr float kTextSize = 15;
constexpr float kSmallSize = 12;
constexpr float kLargeSize = 22;
constexpr int kTileColumns = 32;  ///< periods of a pattern in its tile
constexpr int kTileRows = 4;

/// Coverage of a pattern at a pixel of its period.
bool is_inked(Hatch hatch, int x, int y, int period) {
  const int line = std::max(1, period / 5);
  const auto dot = [&](int cx, int cy) {
    const int dx = std::abs(x - cx);
    const int dy = std::abs(y - cy);
    return dx <= line / 2 && dy <= line / 2;
  };
  switch (hatch) {
    case Hatch::kDiagonal:
      return (x + y) % period < line;
    case Hatch::kBackDiagonal:
      return (x - y + period) % period < line;
    case Hatch::kDots:
      return dot(period / 4, period / 4) || dot(3 * period / 4, 3 * period / 4);
    case Hatch::kCross:
      return (x + y) % period < line || (x - y + period) % period < line;
    case Hatch::kHorizontal:
      return y < line;
    case Hatch::kVertical:
      return x < line;
    case Hatch::kSparse:
      return dot(period / 2, period / 2);
    default:
      return false;
  }
}

/// All characters that the file has: the atlas is made for those.
ImVector<ImWchar> ranges() {
  ImVector<ImWchar> all;
  for (const int value : {0x20, 0xfffd, 0}) {
    all.push_back(static_cast<ImWchar>(value));
  }
  return all;
}

ImFont* add_font(ImFontAtlas& atlas, float size, const ImWchar* characters) {
  ImFontConfig config;
  config.FontDataOwnedByAtlas = false;
  config.OversampleH = 2;
  config.OversampleV = 1;
  config.PixelSnapH = true;
  config.EllipsisChar = 0x2026;
  // The bytes are only read; the parameter is not const because atlases may own them.
  auto* const bytes = const_cast<unsigned char*>(kFontFile);
  return atlas.AddFontFromMemoryTTF(
      bytes, static_cast<int>(kFontFileSize), std::round(size), &config, characters);
}

void draw_pattern(ImFontAtlas& atlas, const ImFontAtlasCustomRect& place, Hatch hatch, int period) {
  for (int y = 0; y < place.Height; ++y) {
    for (int x = 0; x < place.Width; ++x) {
      const std::size_t at =
          static_cast<std::size_t>(place.Y + y) * static_cast<std::size_t>(atlas.TexWidth) +
          static_cast<std::size_t>(place.X + x);
      atlas.TexPixelsAlpha8[at] = is_inked(hatch, x % period, y % period, period) ? 255 : 0;
    }
  }
}

}  // namespace

Fonts build_fonts(ImFontAtlas& atlas, float scale) {
  atlas.Clear();
  // Characters are looked up while fonts are built, so the list must live until then.
  const ImVector<ImWchar> characters = ranges();
  Fonts fonts;
  fonts.text = add_font(atlas, kTextSize * scale, characters.Data);
  fonts.small = add_font(atlas, kSmallSize * scale, characters.Data);
  fonts.large = add_font(atlas, kLargeSize * scale, characters.Data);
  const int period = std::max(4, static_cast<int>(std::lround(8 * scale)));
  std::array<int, kHatchCount> places{};
  for (int& place : places) {
    place = atlas.AddCustomRectRegular(period * kTileColumns, period * kTileRows);
  }
  const bool built = atlas.Build();
  LOCKSTEP_CHECK(built && atlas.TexPixelsAlpha8 != nullptr, "the font atlas was not built");
  for (int i = 0; i < kHatchCount; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const ImFontAtlasCustomRect& place = *atlas.GetCustomRectByIndex(places[index]);
    draw_pattern(atlas, place, static_cast<Hatch>(i), period);
    HatchTile& tile = fonts.hatches[index];
    atlas.CalcCustomRectUV(&place, &tile.uv_min, &tile.uv_max);
    tile.size = ImVec2(place.Width, place.Height);
  }
  return fonts;
}

}  // namespace lockstep::ui
