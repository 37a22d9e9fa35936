// Draw: what views are painted of, on top of ImDrawList: hatched boxes of two quads, labels that
// elide, axes. Coordinates are whole pixels.
#pragma once

#include <string>
#include <string_view>

#include <imgui.h>

#include "visualizer/models/time_axis.h"
#include "visualizer/ui/theme.h"

namespace lockstep::ui {

struct Rect {
  ImVec2 min;
  ImVec2 max;
  float width() const { return max.x - min.x; }
  float height() const { return max.y - min.y; }
  bool contains(const ImVec2& point) const {
    return point.x >= min.x && point.x < max.x && point.y >= min.y && point.y < max.y;
  }
};

Rect intersect(const Rect& a, const Rect& b);

/// Of both opaque colours, `part` (0 to 1) of `b`.
ImU32 mixed(ImU32 a, ImU32 b, float part);

/// Filled, hatched where the look says so, outlined where it is communication. Clipped to `clip` by
/// arithmetic, so that what is outside costs nothing.
void box(ImDrawList& list, const Rect& rect, const Look& look, const Rect& clip);

/// The longest beginning of `text` that fits, ending with an ellipsis where it was cut; empty when
/// not even three characters fit.
std::string elided(const ImFont& font, std::string_view text, float width);
float text_width(const ImFont& font, std::string_view text);

/// In the middle of the rectangle's left part, on a plate of the look's fill, if the box is wide
/// enough to be read.
void label(ImDrawList& list, const Rect& rect, const Look& look, std::string_view text);

/// One letter in the middle: for boxes too narrow for words.
void letter(ImDrawList& list, const Rect& rect, const Look& look, char letter);

/// All of a text in the middle, in small letters, on a plate where the look is hatched. Nothing
/// keeps it inside: the caller knows that it fits.
void centred(ImDrawList& list, const Rect& rect, const Look& look, std::string_view text);

/// Text at a place, in any font, without an item.
void text_at(
    ImDrawList& list, const ImFont* font, const ImVec2& at, ImU32 colour, std::string_view text);

/// A line with every character in a cell of its own, for text whose columns mean something; East
/// Asian characters take two.
void fixed_text(
    ImDrawList& list, const ImFont& font, ImVec2 at, ImU32 colour, std::string_view text);
/// Width of such a cell.
float fixed_width(const ImFont& font);

/// Ticks with labels in `head`, lines through `body`.
void draw_time_axis(ImDrawList& list,
                    const Rect& head,
                    const Rect& body,
                    const view::TimeWindow& window);

/// How many ticks fit into so many pixels.
int ticks_in(float width);

/// A legend's entry: box, letter and name; returns its width.
float legend_entry(
    ImDrawList& list, const ImVec2& at, const Look& look, char letter, std::string_view name);

}  // namespace lockstep::ui
