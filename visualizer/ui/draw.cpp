#include "visualizer/ui/draw.h"

#include <algorithm>
#include <cmath>

#include <imgui_internal.h>

#include "visualizer/ui/state.h"

namespace lockstep::ui {
namespace {

/// The pattern repeats by pieces: a texture's part cannot be repeated by the sampler.
void hatch(ImDrawList& list, const Rect& rect, const Look& look) {
  const HatchTile& tile = state().fonts.hatches[static_cast<std::size_t>(look.hatch)];
  // In the colour of the text, which stands out from the fill.
  const ImU32 colour = (look.text & 0x00ffffffU) | (theme().hatch & 0xff000000U);
  for (float y = rect.min.y; y < rect.max.y; y += tile.size.y) {
    for (float x = rect.min.x; x < rect.max.x; x += tile.size.x) {
      const ImVec2 end(std::min(rect.max.x, x + tile.size.x),
                       std::min(rect.max.y, y + tile.size.y));
      const ImVec2 part((end.x - x) / tile.size.x, (end.y - y) / tile.size.y);
      const ImVec2 uv(tile.uv_min.x + (tile.uv_max.x - tile.uv_min.x) * part.x,
                      tile.uv_min.y + (tile.uv_max.y - tile.uv_min.y) * part.y);
      list.PrimReserve(6, 4);
      list.PrimRectUV(ImVec2(x, y), end, tile.uv_min, uv, colour);
    }
  }
}

const char* end_of(std::string_view text) {
  return text.data() + text.size();
}

}  // namespace

Rect intersect(const Rect& a, const Rect& b) {
  return {{std::max(a.min.x, b.min.x), std::max(a.min.y, b.min.y)},
          {std::min(a.max.x, b.max.x), std::min(a.max.y, b.max.y)}};
}

ImU32 mixed(ImU32 a, ImU32 b, float part) {
  const ImVec4 from = ImGui::ColorConvertU32ToFloat4(a);
  const ImVec4 to = ImGui::ColorConvertU32ToFloat4(b);
  return ImGui::ColorConvertFloat4ToU32(ImVec4(from.x + (to.x - from.x) * part,
                                               from.y + (to.y - from.y) * part,
                                               from.z + (to.z - from.z) * part,
                                               1));
}

void box(ImDrawList& list, const Rect& rect, const Look& look, const Rect& clip) {
  const Rect part = intersect(rect, clip);
  if (part.width() <= 0 || part.height() <= 0) {
    return;
  }
  list.AddRectFilled(part.min, part.max, look.fill);
  const bool wide = part.width() >= scaled(6);
  if (look.hatch != Hatch::kNone && wide) {
    hatch(list, part, look);
  }
  if (look.outlined && wide) {
    const float line = std::max(1.0F, std::floor(scaled(1)));
    const ImU32 colour = theme().text;
    list.AddRectFilled(part.min, ImVec2(part.max.x, part.min.y + line), colour);
    list.AddRectFilled(ImVec2(part.min.x, part.max.y - line), part.max, colour);
  }
}

float text_width(const ImFont& font, std::string_view text) {
  float width = 0;
  for (const char* at = text.data(); at < end_of(text);) {
    unsigned int character = 0;
    at += ImTextCharFromUtf8(&character, at, end_of(text));
    width += font.GetCharAdvance(static_cast<ImWchar>(character));
  }
  return width;
}

std::string elided(const ImFont& font, std::string_view text, float width) {
  constexpr int kFewest = 3;
  const float dots = font.GetCharAdvance(0x2026);
  float used = 0;
  int count = 0;
  const char* fits = text.data();  // up to here the ellipsis fits behind it
  for (const char* at = text.data(); at < end_of(text);) {
    unsigned int character = 0;
    at += ImTextCharFromUtf8(&character, at, end_of(text));
    used += font.GetCharAdvance(static_cast<ImWchar>(character));
    if (used > width) {
      return count < kFewest ? "" : std::string(text.data(), fits) + "\xE2\x80\xA6";
    }
    if (used + dots <= width) {
      fits = at;
      ++count;
    }
  }
  return std::string(text);
}

void centred(ImDrawList& list, const Rect& rect, const Look& look, std::string_view text) {
  const ImFont* font = state().fonts.small;
  const float width = text_width(*font, text);
  const ImVec2 at(std::floor((rect.min.x + rect.max.x - width) / 2),
                  std::floor((rect.min.y + rect.max.y - font->FontSize) / 2));
  if (look.hatch != Hatch::kNone) {
    list.AddRectFilled(
        ImVec2(at.x - 1, at.y), ImVec2(at.x + width + 1, at.y + font->FontSize), look.fill);
  }
  text_at(list, font, at, look.text, text);
}

void text_at(
    ImDrawList& list, const ImFont* font, const ImVec2& at, ImU32 colour, std::string_view text) {
  const ImVec2 whole(std::floor(at.x), std::floor(at.y));
  list.AddText(font, font->FontSize, whole, colour, text.data(), end_of(text));
}

void label(ImDrawList& list, const Rect& rect, const Look& look, std::string_view text) {
  const ImFont* font = state().fonts.small;
  const float margin = scaled(3);
  if (rect.width() < 3 * font->FontSize || rect.height() < font->FontSize) {
    return;
  }
  const std::string shown = elided(*font, text, rect.width() - 2 * margin);
  if (shown.empty()) {
    return;
  }
  const float width = text_width(*font, shown);
  const ImVec2 at(rect.min.x + margin,
                  std::floor(rect.min.y + (rect.height() - font->FontSize) / 2));
  if (look.hatch != Hatch::kNone) {
    list.AddRectFilled(ImVec2(at.x - 1, at.y),
                       ImVec2(std::min(rect.max.x, at.x + width + 1), at.y + font->FontSize),
                       look.fill);
  }
  text_at(list, font, at, look.text, shown);
}

void letter(ImDrawList& list, const Rect& rect, const Look& look, char letter) {
  centred(list, rect, look, {&letter, 1});
}

void fixed_text(
    ImDrawList& list, const ImFont& font, ImVec2 at, ImU32 colour, std::string_view text) {
  constexpr unsigned int kFirstWide = 0x1100;  // Hangul, and what follows of East Asia
  constexpr unsigned int kSymbols = 0x2000;    // punctuation, arrows, blocks
  constexpr unsigned int kAfterSymbols = 0x2e80;
  const float cell = fixed_width(font);
  for (const char* next = text.data(); next < end_of(text);) {
    unsigned int character = 0;
    const char* const from = next;
    next += ImTextCharFromUtf8(&character, next, end_of(text));
    const bool narrow =
        character < kFirstWide || (character >= kSymbols && character < kAfterSymbols);
    const float room = narrow ? cell : 2 * cell;
    const float width = font.GetCharAdvance(static_cast<ImWchar>(character));
    text_at(list,
            &font,
            ImVec2(at.x + std::max(0.0F, (room - width) / 2), at.y),
            colour,
            std::string_view(from, static_cast<std::size_t>(next - from)));
    at.x += room;
  }
}

float fixed_width(const ImFont& font) {
  return std::ceil(font.GetCharAdvance('m') * 0.8F);
}

int ticks_in(float width) {
  return std::max(1, static_cast<int>(width / scaled(90)));
}

void draw_time_axis(ImDrawList& list,
                    const Rect& head,
                    const Rect& body,
                    const view::TimeWindow& window) {
  const ImFont* font = state().fonts.small;
  const view::TimeAxis axis = view::time_axis(window, ticks_in(head.width()));
  const double scale = static_cast<double>(head.width()) /
                       static_cast<double>(std::max<Nanoseconds>(1, window.length()));
  for (const view::Tick& tick : axis.ticks) {
    const float x = std::floor(
        head.min.x + static_cast<float>(static_cast<double>(tick.time - window.from) * scale));
    list.AddRectFilled(ImVec2(x, head.max.y - scaled(4)), ImVec2(x + 1, body.max.y), theme().grid);
    const float width = text_width(*font, tick.text);
    const float left =
        std::clamp(x + scaled(3), head.min.x, std::max(head.min.x, head.max.x - width));
    if (left >= x) {
      text_at(list, font, ImVec2(left, head.min.y), theme().muted, tick.text);
    }
  }
}

float legend_entry(
    ImDrawList& list, const ImVec2& at, const Look& look, char letter, std::string_view name) {
  const ImFont* font = state().fonts.small;
  const float side = std::floor(font->FontSize * 1.2F);
  const Rect swatch{at, ImVec2(at.x + std::floor(1.6F * side), at.y + side)};
  box(list, swatch, look, swatch);
  ui::letter(list, swatch, look, letter);
  const float left = swatch.max.x + scaled(5);
  text_at(list, font, ImVec2(left, at.y), theme().text, name);
  return left + text_width(*font, name) - at.x;
}

}  // namespace lockstep::ui
