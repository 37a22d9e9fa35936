#include "visualizer/ui/plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "visualizer/ui/state.h"

namespace lockstep::ui {
namespace {

constexpr int kByteTicks = 5;
constexpr std::size_t kNamePlaces = 24;  ///< where the name of a band is tried

struct ByteUnit {
  std::int64_t bytes;
  const char* name;
};
constexpr std::array<ByteUnit, 4> kUnits{{{std::int64_t{1} << 30U, "GiB"},
                                          {std::int64_t{1} << 20U, "MiB"},
                                          {std::int64_t{1} << 10U, "KiB"},
                                          {1, "B"}}};

/// The largest unit of which at least two fit.
const ByteUnit& unit_of(std::int64_t top) {
  const auto* const it = std::find_if(
      kUnits.begin(), kUnits.end(), [&](const ByteUnit& unit) { return top >= 2 * unit.bytes; });
  return it == kUnits.end() ? kUnits.back() : *it;
}

std::int64_t tick_step(std::int64_t top) {
  const ByteUnit& unit = unit_of(top);
  const std::int64_t least = (top / unit.bytes + kByteTicks - 1) / kByteTicks;
  return view::round_step(std::max<std::int64_t>(1, least)) * unit.bytes;
}

std::string tick_text(std::int64_t bytes, std::int64_t top) {
  const ByteUnit& unit = unit_of(top);
  return fmt::format("{} {}", bytes / unit.bytes, unit.name);
}

double part_of(Nanoseconds value, Nanoseconds whole) {
  return static_cast<double>(value) / static_cast<double>(std::max<Nanoseconds>(1, whole));
}

/// The pattern lies still on the screen, so that neighbouring pieces fit together.
void hatch_still(ImDrawList& list, const Rect& rect, Hatch kind) {
  if (kind == Hatch::kNone) {
    return;
  }
  const HatchTile& tile = state().fonts.hatches[static_cast<std::size_t>(kind)];
  const ImVec2 uv_size(tile.uv_max.x - tile.uv_min.x, tile.uv_max.y - tile.uv_min.y);
  const auto uv_at = [&](const ImVec2& corner, const ImVec2& at) {
    return ImVec2(tile.uv_min.x + uv_size.x * (at.x - corner.x) / tile.size.x,
                  tile.uv_min.y + uv_size.y * (at.y - corner.y) / tile.size.y);
  };
  const float left = std::floor(rect.min.x / tile.size.x) * tile.size.x;
  const float top = std::floor(rect.min.y / tile.size.y) * tile.size.y;
  for (float y = top; y < rect.max.y; y += tile.size.y) {
    for (float x = left; x < rect.max.x; x += tile.size.x) {
      const Rect piece = intersect(rect, {ImVec2(x, y), ImVec2(x + tile.size.x, y + tile.size.y)});
      const ImVec2 corner(x, y);
      list.PrimReserve(6, 4);
      list.PrimRectUV(
          piece.min, piece.max, uv_at(corner, piece.min), uv_at(corner, piece.max), theme().hatch);
    }
  }
}

/// A band's edges by column, in pixels; `high` is the upper one.
struct Edges {
  std::vector<float> low;
  std::vector<float> high;
};

float column_x(const Plot& plot, std::size_t column, std::size_t columns) {
  const float part = static_cast<float>(column) / static_cast<float>(columns);
  return std::floor(plot.body.min.x + plot.body.width() * part);
}

void draw_band(ImDrawList& list, const Plot& plot, const Edges& edges, const Look& look) {
  const std::size_t columns = edges.low.size();
  for (std::size_t first = 0; first < columns;) {
    std::size_t last = first + 1;
    while (last < columns && edges.low[last] == edges.low[first] &&
           edges.high[last] == edges.high[first]) {
      ++last;
    }
    const Rect rect{ImVec2(column_x(plot, first, columns), edges.high[first]),
                    ImVec2(column_x(plot, last, columns), edges.low[first])};
    if (rect.height() >= 1) {
      list.AddRectFilled(rect.min, rect.max, look.fill);
      hatch_still(list, rect, look.hatch);
    }
    first = last;
  }
}

/// Around `column`, as wide as the band stays high enough for a line of text.
Rect room_around(const Plot& plot, const Edges& edges, float line, std::size_t column) {
  const std::size_t columns = edges.low.size();
  float low = edges.low[column];
  float high = edges.high[column];
  std::size_t first = column;
  std::size_t last = column;
  const auto fits = [&](std::size_t at) {
    return std::min(low, edges.low[at]) - std::max(high, edges.high[at]) >= line;
  };
  const auto take = [&](std::size_t at) {
    low = std::min(low, edges.low[at]);
    high = std::max(high, edges.high[at]);
  };
  while (last + 1 < columns && fits(last + 1)) {
    take(++last);
  }
  while (first > 0 && fits(first - 1)) {
    take(--first);
  }
  return {ImVec2(column_x(plot, first, columns), high),
          ImVec2(column_x(plot, last + 1, columns), low)};
}

/// The widest of several places; of height 0 where the band is nowhere high enough.
Rect place_for_name(const Plot& plot, const Edges& edges, float line) {
  Rect best{plot.body.min, plot.body.min};
  const std::size_t columns = edges.low.size();
  for (std::size_t i = 0; i < kNamePlaces; ++i) {
    const std::size_t column = (2 * i + 1) * columns / (2 * kNamePlaces);
    if (edges.low[column] - edges.high[column] < line) {
      continue;
    }
    const Rect rect = room_around(plot, edges, line, column);
    best = rect.width() > best.width() ? rect : best;
  }
  return best;
}

void name_band(ImDrawList& list, const Plot& plot, const Edges& edges, const Band& band) {
  const ImFont* font = state().fonts.small;
  const float line = font->FontSize + scaled(2);
  const Rect rect = place_for_name(plot, edges, line);
  if (rect.height() < line || rect.width() < font->FontSize) {
    return;
  }
  const float width = text_width(*font, band.name) + scaled(8);
  if (rect.width() < width) {
    letter(list, rect, band.look, band.letter);
    return;
  }
  const float middle = (rect.min.x + rect.max.x) / 2;
  label(list,
        {ImVec2(std::floor(middle - width / 2), rect.min.y),
         ImVec2(std::floor(middle + width / 2) + 1, rect.max.y)},
        band.look,
        band.name);
}

}  // namespace

float Plot::x_of(Nanoseconds at) const {
  const double part = std::clamp(part_of(at - time.from, time.length()), -1.0, 2.0);
  return std::floor(body.min.x + static_cast<float>(part * static_cast<double>(body.width())));
}

float Plot::y_of(std::int64_t bytes) const {
  const double part = std::clamp(part_of(bytes, top), 0.0, 1.0);
  return std::floor(body.max.y - static_cast<float>(part * static_cast<double>(body.height())));
}

Nanoseconds Plot::time_at(float x) const {
  const double width = std::max(1.0, static_cast<double>(body.width()));
  const double part = std::clamp(static_cast<double>(x - body.min.x) / width, 0.0, 1.0);
  return time.from + static_cast<Nanoseconds>(part * static_cast<double>(time.length()));
}

int columns_in(float width) {
  return std::max(1, static_cast<int>(width / std::max(2.0F, scaled(2))));
}

std::int64_t plot_top(std::int64_t most, std::int64_t limit, int near) {
  const std::int64_t highest = limit / near < most ? std::max(most, limit) : most;
  return std::max<std::int64_t>(16, highest + highest / 8);
}

float byte_axis_width(std::int64_t top) {
  float width = 0;
  const std::int64_t step = tick_step(top);
  for (std::int64_t at = 0; at <= top; at += step) {
    width = std::max(width, text_width(*state().fonts.small, tick_text(at, top)));
  }
  return std::floor(width + scaled(6));
}

void draw_byte_axis(ImDrawList& list, const Plot& plot) {
  const ImFont* font = state().fonts.small;
  const std::int64_t step = tick_step(plot.top);
  float last = plot.body.max.y + 2 * font->FontSize;
  for (std::int64_t at = 0; at <= plot.top; at += step) {
    const float y = plot.y_of(at);
    list.AddRectFilled(ImVec2(plot.body.min.x, y), ImVec2(plot.body.max.x, y + 1), theme().grid);
    if (last - y < font->FontSize + scaled(3)) {
      continue;
    }
    last = y;
    const std::string text = tick_text(at, plot.top);
    const float left = plot.body.min.x - scaled(5) - text_width(*font, text);
    text_at(list, font, ImVec2(left, y - font->FontSize / 2), theme().muted, text);
  }
}

void draw_stack(ImDrawList& list, const Plot& plot, const std::vector<Band>& bands) {
  if (bands.empty() || bands.front().bytes.empty()) {
    return;
  }
  const std::size_t columns = bands.front().bytes.size();
  std::vector<std::int64_t> below(columns, 0);
  std::vector<Edges> all;
  for (const Band& band : bands) {
    Edges& edges = all.emplace_back();
    for (std::size_t i = 0; i < columns; ++i) {
      edges.low.push_back(plot.y_of(below[i]));
      below[i] += band.bytes[i];
      edges.high.push_back(plot.y_of(below[i]));
    }
    draw_band(list, plot, edges, band.look);
  }
  Edges rim = all.back();
  for (std::size_t i = 0; i < columns; ++i) {
    rim.low[i] = rim.high[i] + 1;
  }
  draw_band(list, plot, rim, {theme().muted, theme().muted, Hatch::kNone, false});
  for (std::size_t i = 0; i < bands.size(); ++i) {
    name_band(list, plot, all[i], bands[i]);
  }
}

void draw_plate(ImDrawList& list, const Rect& inside, const ImVec2& at, std::string_view text) {
  const ImFont* font = state().fonts.small;
  const float margin = scaled(3);
  const std::string shown = elided(*font, text, inside.width() - 2 * margin);
  if (shown.empty()) {
    return;
  }
  const float width = text_width(*font, shown) + 2 * margin;
  const float height = font->FontSize + 2;
  const float left = std::clamp(at.x, inside.min.x, std::max(inside.min.x, inside.max.x - width));
  const float top = std::clamp(at.y, inside.min.y, std::max(inside.min.y, inside.max.y - height));
  const ImVec2 corner(std::floor(left), std::floor(top));
  list.AddRectFilled(corner, ImVec2(corner.x + width, corner.y + height), theme().panel);
  text_at(list, font, ImVec2(corner.x + margin, corner.y + 1), theme().text, shown);
}

void draw_limit(ImDrawList& list, const Plot& plot, std::int64_t bytes, std::string_view text) {
  const float y = plot.y_of(bytes);
  const float thick = std::max(1.0F, std::floor(scaled(2)));
  const float dash = std::floor(scaled(10));
  for (float x = plot.body.min.x; x < plot.body.max.x; x += 1.6F * dash) {
    const float end = std::min(plot.body.max.x, std::floor(x + dash));
    list.AddRectFilled(ImVec2(std::floor(x), y), ImVec2(end, y + thick), theme().bad);
  }
  const ImFont* font = state().fonts.small;
  const float width = text_width(*font, text) + scaled(6);
  draw_plate(list, plot.body, ImVec2(plot.body.max.x - width, y - font->FontSize - 3), text);
}

void draw_mark(
    ImDrawList& list, const Plot& plot, Nanoseconds at, std::int64_t bytes, std::string_view text) {
  const float x = plot.x_of(at);
  const float y = plot.y_of(bytes);
  const float side = std::floor(scaled(6));
  list.AddTriangleFilled(ImVec2(x, y),
                         ImVec2(x - side, y - 1.5F * side),
                         ImVec2(x + side, y - 1.5F * side),
                         theme().text);
  const ImFont* font = state().fonts.small;
  const float width = text_width(*font, text) + scaled(6);
  const bool right = x + side + width <= plot.body.max.x;
  const float left = right ? x + side + scaled(2) : x - side - scaled(2) - width;
  draw_plate(list, plot.body, ImVec2(left, y - font->FontSize - scaled(3)), text);
}

void draw_cursor(ImDrawList& list,
                 const Rect& body,
                 const view::TimeWindow& window,
                 Nanoseconds at,
                 std::string_view text) {
  if (at < window.from || at > window.to) {
    return;
  }
  const Plot plot{body, window, 1};
  const float x = std::min(plot.x_of(at), body.max.x - 1);
  list.AddRectFilled(ImVec2(x, body.min.y), ImVec2(x + 1, body.max.y), theme().cursor);
  if (!text.empty()) {
    draw_plate(list, body, ImVec2(x + scaled(3), body.max.y - scaled(18)), text);
  }
}

void draw_legend(const std::vector<LegendEntry>& entries) {
  ImDrawList& list = *ImGui::GetWindowDrawList();
  const ImFont* font = state().fonts.small;
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  const float line = std::floor(font->FontSize * 1.6F);
  ImVec2 at(std::floor(origin.x), std::floor(origin.y));
  for (const LegendEntry& entry : entries) {
    const float swatch = std::floor(1.92F * font->FontSize) + scaled(6);
    const std::string text = elided(*font, entry.text, width - swatch);
    const float needed = swatch + text_width(*font, text);
    if (at.x > origin.x + 1 && at.x + needed > origin.x + width) {
      at = ImVec2(std::floor(origin.x), at.y + line);
    }
    at.x += std::floor(legend_entry(list, at, entry.look, entry.letter, text) + scaled(14));
  }
  ImGui::Dummy(ImVec2(1, at.y - origin.y + line));
}

}  // namespace lockstep::ui
