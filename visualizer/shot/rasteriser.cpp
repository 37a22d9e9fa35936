#include "visualizer/shot/rasteriser.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace lockstep::shot {
namespace {

constexpr std::int64_t kSubpixels = 256;

struct Point {
  std::int64_t x = 0;
  std::int64_t y = 0;
};

Point snapped(const ImVec2& position) {
  return {std::llround(static_cast<double>(position.x) * kSubpixels),
          std::llround(static_cast<double>(position.y) * kSubpixels)};
}

/// Twice the area of (a, b, p): positive when p lies to the right of a -> b on a screen whose y
/// grows downwards.
std::int64_t area(const Point& a, const Point& b, const Point& p) {
  return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
}

/// A pixel centre on a left or top edge belongs to the triangle, one on another edge does not, so
/// that two triangles with a common edge cover each pixel once.
bool is_top_left(const Point& a, const Point& b) {
  return (a.y == b.y && b.x > a.x) || b.y < a.y;
}

double texel(const Texture& texture, int x, int y) {
  const int column = std::clamp(x, 0, texture.width - 1);
  const int row = std::clamp(y, 0, texture.height - 1);
  return static_cast<double>(
             texture.alpha[static_cast<std::size_t>(row) * static_cast<std::size_t>(texture.width) +
                           static_cast<std::size_t>(column)]) /
         255.0;
}

double sample(const Texture& texture, double u, double v) {
  const double x = u * texture.width - 0.5;
  const double y = v * texture.height - 0.5;
  const double left = std::floor(x);
  const double top = std::floor(y);
  const double right_part = x - left;
  const double bottom_part = y - top;
  const int column = static_cast<int>(left);
  const int row = static_cast<int>(top);
  const double upper =
      texel(texture, column, row) * (1 - right_part) + texel(texture, column + 1, row) * right_part;
  const double lower = texel(texture, column, row + 1) * (1 - right_part) +
                       texel(texture, column + 1, row + 1) * right_part;
  return upper * (1 - bottom_part) + lower * bottom_part;
}

std::uint8_t blended(double source, std::uint8_t below, double alpha) {
  // Never negative, so cutting off rounds; lround would be a call for every channel.
  const double half_up = source * alpha + static_cast<double>(below) * (1 - alpha) + 0.5;
  return static_cast<std::uint8_t>(half_up);
}

void blend(Colour& pixel, const std::array<double, 4>& source, double alpha) {
  if (alpha <= 0) {
    return;
  }
  pixel.r = blended(source[0], pixel.r, alpha);
  pixel.g = blended(source[1], pixel.g, alpha);
  pixel.b = blended(source[2], pixel.b, alpha);
  pixel.a = blended(255, pixel.a, alpha);
}

std::array<double, 4> channels(ImU32 colour) {
  const auto channel = [&](unsigned shift) {
    return static_cast<double>((colour >> shift) & 0xffU);
  };
  return {channel(IM_COL32_R_SHIFT),
          channel(IM_COL32_G_SHIFT),
          channel(IM_COL32_B_SHIFT),
          channel(IM_COL32_A_SHIFT)};
}

/// A triangle made ready: clockwise on the screen, edges as integers.
class Triangle {
 public:
  Triangle(const ImDrawVert& a, const ImDrawVert& b, const ImDrawVert& c)
      : vertices_{&a, &b, &c}, points_{snapped(a.pos), snapped(b.pos), snapped(c.pos)} {
    area_ = area(points_[0], points_[1], points_[2]);
    if (area_ < 0) {
      std::swap(vertices_[1], vertices_[2]);
      std::swap(points_[1], points_[2]);
      area_ = -area_;
    }
    flat_ = a.col == b.col && a.col == c.col && a.uv.x == b.uv.x && a.uv.x == c.uv.x &&
            a.uv.y == b.uv.y && a.uv.y == c.uv.y;
  }

  bool empty() const { return area_ == 0; }
  bool flat() const { return flat_; }
  const ImDrawVert& first() const { return *vertices_[0]; }

  Clip bounds(const Clip& clip) const {
    const auto low = [](std::int64_t a, std::int64_t b, std::int64_t c) {
      return static_cast<int>(std::clamp<std::int64_t>(
          std::min({a, b, c}) / kSubpixels - 1, -1, std::int64_t{1} << 20));
    };
    const auto high = [](std::int64_t a, std::int64_t b, std::int64_t c) {
      return static_cast<int>(std::clamp<std::int64_t>(
          std::max({a, b, c}) / kSubpixels + 2, -1, std::int64_t{1} << 20));
    };
    return {std::max(clip.x0, low(points_[0].x, points_[1].x, points_[2].x)),
            std::max(clip.y0, low(points_[0].y, points_[1].y, points_[2].y)),
            std::min(clip.x1, high(points_[0].x, points_[1].x, points_[2].x)),
            std::min(clip.y1, high(points_[0].y, points_[1].y, points_[2].y))};
  }

  /// Weights of the three vertices at a pixel centre; false when it is not covered.
  bool covers(int x, int y, std::array<std::int64_t, 3>& weights) const {
    const Point centre{x * kSubpixels + kSubpixels / 2, y * kSubpixels + kSubpixels / 2};
    for (std::size_t i = 0; i < 3; ++i) {
      const Point& from = points_[(i + 1) % 3];
      const Point& to = points_[(i + 2) % 3];
      weights[i] = area(from, to, centre);
      if (weights[i] < 0 || (weights[i] == 0 && !is_top_left(from, to))) {
        return false;
      }
    }
    return true;
  }

  void shade(const std::array<std::int64_t, 3>& weights,
             const Texture& texture,
             Colour& pixel) const {
    std::array<double, 4> colour{};
    double u = 0;
    double v = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const double part = static_cast<double>(weights[i]) / static_cast<double>(area_);
      const std::array<double, 4> own = channels(vertices_[i]->col);
      for (std::size_t k = 0; k < 4; ++k) {
        colour[k] += part * own[k];
      }
      u += part * static_cast<double>(vertices_[i]->uv.x);
      v += part * static_cast<double>(vertices_[i]->uv.y);
    }
    blend(pixel, colour, colour[3] / 255.0 * sample(texture, u, v));
  }

 private:
  std::array<const ImDrawVert*, 3> vertices_;
  std::array<Point, 3> points_;
  std::int64_t area_ = 0;
  bool flat_ = false;
};

}  // namespace

void draw_triangle(const ImDrawVert& a,
                   const ImDrawVert& b,
                   const ImDrawVert& c,
                   const Texture& texture,
                   const Clip& clip,
                   Image& image) {
  const Triangle triangle(a, b, c);
  if (triangle.empty()) {
    return;
  }
  const Clip bounds = triangle.bounds(clip);
  const std::array<double, 4> colour = channels(triangle.first().col);
  const ImVec2& uv = triangle.first().uv;
  const double alpha =
      colour[3] / 255.0 *
      (triangle.flat() ? sample(texture, static_cast<double>(uv.x), static_cast<double>(uv.y))
                       : 1.0);
  std::array<std::int64_t, 3> weights{};
  for (int y = bounds.y0; y < bounds.y1; ++y) {
    for (int x = bounds.x0; x < bounds.x1; ++x) {
      if (!triangle.covers(x, y, weights)) {
        continue;
      }
      if (triangle.flat()) {
        blend(image.at(x, y), colour, alpha);
      } else {
        triangle.shade(weights, texture, image.at(x, y));
      }
    }
  }
}

void rasterise(const ImDrawData& data, const Texture& texture, Image& image) {
  for (int i = 0; i < data.CmdListsCount; ++i) {
    const ImDrawList& list = *data.CmdLists[i];
    for (const ImDrawCmd& command : list.CmdBuffer) {
      if (command.UserCallback != nullptr) {
        continue;
      }
      const ImVec4& rect = command.ClipRect;
      const Clip clip{std::max(0, static_cast<int>(rect.x - data.DisplayPos.x)),
                      std::max(0, static_cast<int>(rect.y - data.DisplayPos.y)),
                      std::min(image.width, static_cast<int>(rect.z - data.DisplayPos.x)),
                      std::min(image.height, static_cast<int>(rect.w - data.DisplayPos.y))};
      const auto vertex = [&](unsigned int k) -> const ImDrawVert& {
        return list.VtxBuffer[static_cast<int>(command.VtxOffset) +
                              list.IdxBuffer[static_cast<int>(command.IdxOffset + k)]];
      };
      for (unsigned int k = 0; k + 2 < command.ElemCount; k += 3) {
        draw_triangle(vertex(k), vertex(k + 1), vertex(k + 2), texture, clip, image);
      }
    }
  }
}

}  // namespace lockstep::shot
