#include "visualizer/ui/theme.h"

#include <algorithm>
#include <cmath>

namespace lockstep::ui {
namespace {

using view::Paint;

/// 0xRRGGBB, opaque.
constexpr ImU32 rgb(std::uint32_t hex) {
  return 0xff000000U | ((hex & 0xffU) << 16U) | (hex & 0xff00U) | (hex >> 16U);
}
constexpr ImU32 with_alpha(ImU32 colour, std::uint32_t alpha) {
  return (colour & 0x00ffffffU) | (alpha << 24U);
}

// Okabe and Ito, "Color Universal Design" (2008): hues that readers with any common colour vision
// tell apart.
constexpr ImU32 kBlack = rgb(0x000000);
constexpr ImU32 kWhite = rgb(0xffffff);
constexpr ImU32 kOrange = rgb(0xe69f00);
constexpr ImU32 kSkyBlue = rgb(0x56b4e9);
constexpr ImU32 kGreen = rgb(0x009e73);
constexpr ImU32 kYellow = rgb(0xf0e442);
constexpr ImU32 kBlue = rgb(0x0072b2);
constexpr ImU32 kVermillion = rgb(0xd55e00);
constexpr ImU32 kPurple = rgb(0xcc79a7);

void set(Theme& theme, Paint paint, ImU32 fill, ImU32 text, Hatch hatch, bool outlined = false) {
  theme.paints[static_cast<std::size_t>(paint)] = {fill, text, hatch, outlined};
}

/// The hues are the same in all themes; what is grey follows the ground.
void set_categories(Theme& theme, ImU32 grey, ImU32 on_grey) {
  set(theme, Paint::kForward, kSkyBlue, kBlack, Hatch::kNone);
  set(theme, Paint::kBackward, kGreen, kBlack, Hatch::kDiagonal);
  set(theme, Paint::kBackwardWeight, kYellow, kBlack, Hatch::kDots);
  set(theme, Paint::kRecompute, kPurple, kBlack, Hatch::kBackDiagonal);
  set(theme, Paint::kOptimizer, kOrange, kBlack, Hatch::kCross);
  set(theme, Paint::kOther, grey, on_grey, Hatch::kHorizontal);
  set(theme, Paint::kTransfer, kVermillion, kBlack, Hatch::kNone, true);
  set(theme, Paint::kWaiting, theme.panel, theme.text, Hatch::kSparse, true);
  set(theme, Paint::kHost, kBlue, kWhite, Hatch::kVertical);
  set(theme, Paint::kKernel, kSkyBlue, kBlack, Hatch::kBackDiagonal);
  const auto memory = [&](std::size_t category, ImU32 fill, ImU32 text, Hatch hatch) {
    theme.memory[category] = {fill, text, hatch, false};
  };
  memory(0, kBlue, kWhite, Hatch::kNone);               // parameter
  memory(1, kSkyBlue, kBlack, Hatch::kVertical);        // gathered parameter
  memory(2, kGreen, kBlack, Hatch::kDiagonal);          // gradient
  memory(3, kOrange, kBlack, Hatch::kCross);            // optimizer
  memory(4, kYellow, kBlack, Hatch::kNone);             // activation
  memory(5, kPurple, kBlack, Hatch::kBackDiagonal);     // logits
  memory(6, kVermillion, kBlack, Hatch::kNone);         // communication
  memory(7, grey, on_grey, Hatch::kDots);               // input
  memory(8, grey, on_grey, Hatch::kHorizontal);         // temporary
  memory(9, theme.raised, theme.text, Hatch::kSparse);  // outside the plan
}

Theme dark() {
  Theme t;
  t.id = ThemeId::kDark;
  t.background = rgb(0x14161a);
  t.panel = rgb(0x1d2026);
  t.raised = rgb(0x2a2e37);
  t.hovered = rgb(0x363c48);
  t.active = rgb(0x434b5a);
  t.border = rgb(0x3c424e);
  t.text = rgb(0xe8eaee);
  t.muted = rgb(0xb4bac6);
  t.disabled = rgb(0xa0a6b2);
  t.accent = rgb(0x6cb6ff);
  t.on_accent = kBlack;
  t.good = rgb(0x5fd0a5);
  t.bad = rgb(0xff8f73);
  t.warning = rgb(0xf2c14e);
  t.grid = rgb(0x31363f);
  t.cursor = rgb(0xffffff);
  t.selection = with_alpha(rgb(0x6cb6ff), 60);
  t.critical = rgb(0xff5a3c);
  t.hatch = with_alpha(kBlack, 105);
  set_categories(t, rgb(0x8c93a1), kBlack);
  return t;
}

Theme light() {
  Theme t;
  t.id = ThemeId::kLight;
  t.background = rgb(0xdfe3e9);
  t.panel = rgb(0xf7f8fa);
  t.raised = rgb(0xe8ebf0);
  t.hovered = rgb(0xd9dfe8);
  t.active = rgb(0xc6d0de);
  t.border = rgb(0xbcc4cf);
  t.text = rgb(0x15181d);
  t.muted = rgb(0x444c58);
  t.disabled = rgb(0x525a66);
  t.accent = rgb(0x005a9e);
  t.on_accent = kWhite;
  t.good = rgb(0x00613f);
  t.bad = rgb(0xa32a00);
  t.warning = rgb(0x7a4a00);
  t.grid = rgb(0xd5dae1);
  t.cursor = rgb(0x15181d);
  t.selection = with_alpha(rgb(0x005a9e), 50);
  t.critical = rgb(0xc01c00);
  t.hatch = with_alpha(kBlack, 95);
  set_categories(t, rgb(0xa3abb8), kBlack);
  return t;
}

Theme high_contrast() {
  Theme t;
  t.id = ThemeId::kContrast;
  t.background = kBlack;
  t.panel = kBlack;
  t.raised = rgb(0x1a1a1a);
  t.hovered = rgb(0x333333);
  t.active = rgb(0x4d4d00);
  t.border = kWhite;
  t.text = kWhite;
  t.muted = rgb(0xe6e6e6);
  t.disabled = rgb(0xb8b8b8);
  t.accent = rgb(0xffff00);
  t.on_accent = kBlack;
  t.good = rgb(0x66ffb3);
  t.bad = rgb(0xffa080);
  t.warning = rgb(0xffd23f);
  t.grid = rgb(0x555555);
  t.cursor = rgb(0xffff00);
  t.selection = with_alpha(rgb(0xffff00), 70);
  t.critical = rgb(0xff4040);
  t.hatch = with_alpha(kBlack, 160);
  set_categories(t, rgb(0xb0b0b0), kBlack);
  return t;
}

ImVec4 vec(ImU32 colour) {
  return ImGui::ColorConvertU32ToFloat4(colour);
}

void apply_colours(const Theme& t, ImVec4* colours) {
  const auto set = [&](std::initializer_list<int> slots, ImU32 colour) {
    for (const int slot : slots) {
      colours[slot] = vec(colour);
    }
  };
  set({ImGuiCol_Text}, t.text);
  set({ImGuiCol_TextDisabled}, t.disabled);
  set({ImGuiCol_WindowBg, ImGuiCol_TitleBg, ImGuiCol_TitleBgCollapsed, ImGuiCol_MenuBarBg},
      t.panel);
  set({ImGuiCol_PopupBg, ImGuiCol_TitleBgActive}, t.panel);
  set({ImGuiCol_ChildBg, ImGuiCol_BorderShadow, ImGuiCol_ScrollbarBg}, 0);
  set({ImGuiCol_Border, ImGuiCol_Separator, ImGuiCol_TableBorderStrong}, t.border);
  set({ImGuiCol_TableBorderLight}, t.grid);
  set({ImGuiCol_FrameBg, ImGuiCol_Button, ImGuiCol_Header, ImGuiCol_Tab}, t.raised);
  set({ImGuiCol_TableHeaderBg, ImGuiCol_TabUnfocused}, t.raised);
  set({ImGuiCol_FrameBgHovered, ImGuiCol_ButtonHovered, ImGuiCol_HeaderHovered}, t.hovered);
  set({ImGuiCol_TabHovered, ImGuiCol_ScrollbarGrab, ImGuiCol_SeparatorHovered}, t.hovered);
  set({ImGuiCol_FrameBgActive, ImGuiCol_ButtonActive, ImGuiCol_HeaderActive}, t.active);
  set({ImGuiCol_TabActive, ImGuiCol_ScrollbarGrabHovered, ImGuiCol_ScrollbarGrabActive}, t.active);
  set({ImGuiCol_CheckMark, ImGuiCol_SliderGrab, ImGuiCol_SliderGrabActive}, t.accent);
  set({ImGuiCol_NavHighlight, ImGuiCol_SeparatorActive, ImGuiCol_DragDropTarget}, t.accent);
  set({ImGuiCol_TextSelectedBg}, t.selection);
  set({ImGuiCol_ModalWindowDimBg, ImGuiCol_NavWindowingDimBg}, with_alpha(kBlack, 140));
  set({ImGuiCol_TableRowBg}, 0);
  set({ImGuiCol_TableRowBgAlt}, with_alpha(t.raised, 110));
}

double linear(double channel) {
  return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4);
}

/// WCAG 2.1, "relative luminance".
double luminance(ImU32 colour) {
  const auto channel = [&](unsigned shift) {
    return linear(static_cast<double>((colour >> shift) & 0xffU) / 255.0);
  };
  return 0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(16);
}

}  // namespace

std::string_view name_of(ThemeId id) {
  static constexpr std::string_view kNames[] = {"dark", "light", "contrast"};
  return kNames[static_cast<std::size_t>(id)];
}

std::optional<ThemeId> parse_theme(std::string_view name) {
  for (int i = 0; i < kThemeCount; ++i) {
    if (name_of(static_cast<ThemeId>(i)) == name) {
      return static_cast<ThemeId>(i);
    }
  }
  return std::nullopt;
}

const Theme& theme_of(ThemeId id) {
  static const std::array<Theme, kThemeCount> themes{dark(), light(), high_contrast()};
  return themes[static_cast<std::size_t>(id)];
}

void apply(const Theme& theme, float scale, ImGuiStyle& style) {
  style = ImGuiStyle();
  style.WindowRounding = 0;
  style.WindowBorderSize = theme.id == ThemeId::kContrast ? 1.0F : 0.0F;
  style.FrameBorderSize = theme.id == ThemeId::kContrast ? 1.0F : 0.0F;
  style.FrameRounding = 3;
  style.GrabRounding = 3;
  style.PopupRounding = 4;
  style.WindowPadding = ImVec2(10, 8);
  style.FramePadding = ImVec2(7, 3);
  style.ItemSpacing = ImVec2(8, 5);
  style.ScrollbarSize = 12;
  style.DisabledAlpha = 1.0F;  // the colour says it; fading would fall below readable contrast
  style.AntiAliasedLinesUseTex = false;
  apply_colours(theme, style.Colors);
  style.ScaleAllSizes(scale);
}

double contrast(ImU32 a, ImU32 b) {
  const double one = luminance(a) + 0.05;
  const double other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

std::vector<TextPair> text_pairs(const Theme& t) {
  std::vector<TextPair> pairs;
  for (const ImU32 ground : {t.panel, t.raised, t.background}) {
    pairs.push_back({"text", t.text, ground});
    pairs.push_back({"muted", t.muted, ground});
    pairs.push_back({"disabled", t.disabled, ground});
    pairs.push_back({"accent", t.accent, ground});
    pairs.push_back({"good", t.good, ground});
    pairs.push_back({"bad", t.bad, ground});
    pairs.push_back({"warning", t.warning, ground});
  }
  pairs.push_back({"text on hovered", t.text, t.hovered});
  pairs.push_back({"text on active", t.text, t.active});
  pairs.push_back({"on accent", t.on_accent, t.accent});
  for (const Look& look : t.paints) {
    pairs.push_back({"paint", look.text, look.fill});
  }
  for (const Look& look : t.memory) {
    pairs.push_back({"memory", look.text, look.fill});
  }
  return pairs;
}

}  // namespace lockstep::ui
