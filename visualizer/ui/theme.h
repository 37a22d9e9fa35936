// Theme: every colour of the window. Three themes; categories are told apart by hue (Okabe and
// Ito's palette for colour-blind readers), by hatch and by letter, never by hue alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <imgui.h>

#include "core/plan.h"
#include "visualizer/models/lanes.h"

namespace lockstep::ui {

enum class ThemeId : std::uint8_t { kDark, kLight, kContrast };
inline constexpr int kThemeCount = 3;
/// "dark", "light", "contrast"
std::string_view name_of(ThemeId id);
std::optional<ThemeId> parse_theme(std::string_view name);

enum class Hatch : std::uint8_t {
  kNone,
  kDiagonal,      ///< rising
  kBackDiagonal,  ///< falling
  kDots,
  kCross,
  kHorizontal,
  kVertical,
  kSparse,  ///< few dots
};
inline constexpr int kHatchCount = 8;

/// How a category is painted.
struct Look {
  ImU32 fill = 0;
  ImU32 text = 0;  ///< on the fill
  Hatch hatch = Hatch::kNone;
  bool outlined = false;  ///< communication
};

struct Theme {
  ThemeId id = ThemeId::kDark;
  ImU32 background = 0;  ///< behind panels
  ImU32 panel = 0;
  ImU32 raised = 0;  ///< cards, fields, buttons
  ImU32 hovered = 0;
  ImU32 active = 0;
  ImU32 border = 0;
  ImU32 text = 0;
  ImU32 muted = 0;     ///< less important text
  ImU32 disabled = 0;  ///< text of what cannot be chosen; still readable
  ImU32 accent = 0;    ///< focus ring, links, selected tab
  ImU32 on_accent = 0;
  ImU32 good = 0;
  ImU32 bad = 0;
  ImU32 warning = 0;
  ImU32 grid = 0;    ///< lines behind data
  ImU32 cursor = 0;  ///< line at the cursor
  ImU32 selection = 0;
  ImU32 critical = 0;  ///< edge of the critical path
  ImU32 hatch = 0;     ///< its alpha is that of hatches; their colour is the look's text
  std::array<Look, view::kPaintCount> paints{};
  std::array<Look, kCategoryCount + 1> memory{};  ///< by Category; the last is non-tensor memory

  const Look& look(view::Paint paint) const { return paints[static_cast<std::size_t>(paint)]; }
};

const Theme& theme_of(ThemeId id);
/// Sets ImGui's own colours and sizes; `scale` 0.75 to 3.
void apply(const Theme& theme, float scale, ImGuiStyle& style);

/// WCAG 2.1 contrast ratio of two opaque colours, 1 to 21.
double contrast(ImU32 a, ImU32 b);

/// A text colour and what it is read on.
struct TextPair {
  std::string_view name;
  ImU32 text = 0;
  ImU32 ground = 0;
};
/// Every pair that the window uses.
std::vector<TextPair> text_pairs(const Theme& theme);

}  // namespace lockstep::ui
