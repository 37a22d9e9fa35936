// Svg: boxes, lines and text as an SVG picture, for reports and documents. Boxes are told apart by
// letter, hatch and colour, so that a print without colour says the same.
//
//     Svg svg(800, 120);
//     svg.box({.x = 10, .y = 10, .width = 90, .height = 18, .fill = "#4477aa", .label = "F0"});
//     write(svg.text());
//
// Text is escaped; a label that does not fit into its box is left out.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep::view {

enum class Hatch : std::uint8_t { kNone, kRising, kFalling, kCrossed, kLevel, kUpright, kDotted };
inline constexpr int kHatchCount = 7;

struct SvgBox {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
  std::string_view fill = "#888888";
  Hatch hatch = Hatch::kNone;
  std::string label = {};
  std::string title = {};  ///< shown when the pointer rests on it
};

struct SvgText {
  double x = 0;
  double y = 0;  ///< of the baseline
  std::string text = {};
  std::string_view anchor = "start";  ///< start, middle, end
};

class Svg {
 public:
  Svg(double width, double height) : width_(width), height_(height) {}
  void box(const SvgBox& box);
  void line(double x1, double y1, double x2, double y2);
  void write(const SvgText& text);
  /// The whole document.
  std::string text() const;

 private:
  double width_;
  double height_;
  std::array<bool, kHatchCount> used_{};
  std::string body_;
};

/// For text and attributes of XML; control bytes, which XML has no form for, become blanks.
std::string xml_escaped(std::string_view text);

}  // namespace lockstep::view
