#include "visualizer/models/svg.h"

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

constexpr double kFontSize = 11;
constexpr double kLetterWidth = 6.7;  // of monospace at that size

/// What a 6 x 6 tile of the pattern holds, by Hatch.
constexpr std::array<std::string_view, kHatchCount> kTiles = {
    "", "M0,6 L6,0", "M0,0 L6,6", "M0,6 L6,0 M0,0 L6,6", "M0,3 L6,3", "M3,0 L3,6", "M2,3 L4,3"};

/// Hundredths of a unit, without zeros at the end.
std::string number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') {
    text.pop_back();
  }
  return text == "-0" ? "0" : text;
}

std::string area(const SvgBox& box) {
  return fmt::format(R"(x="{}" y="{}" width="{}" height="{}")",
                     number(box.x),
                     number(box.y),
                     number(box.width),
                     number(box.height));
}

}  // namespace

std::string xml_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c >= 0 && c < ' ' ? ' ' : c;
    }
  }
  return result;
}

void Svg::box(const SvgBox& box) {
  body_ += fmt::format(R"(<g><rect class="box" {} fill="{}"/>)", area(box), xml_escaped(box.fill));
  if (box.hatch != Hatch::kNone) {
    const auto kind = static_cast<std::size_t>(box.hatch);
    used_[kind] = true;
    body_ += fmt::format(R"~(<rect {} fill="url(#hatch{})"/>)~", area(box), kind);
  }
  if (!box.title.empty()) {
    body_ += fmt::format("<title>{}</title>", xml_escaped(box.title));
  }
  const bool fits = static_cast<double>(text_width(box.label)) * kLetterWidth + 4 <= box.width;
  if (!box.label.empty() && fits) {
    body_ += fmt::format(R"(<text x="{}" y="{}" text-anchor="middle">{}</text>)",
                         number(box.x + box.width / 2),
                         number(box.y + box.height / 2 + kFontSize / 3),
                         xml_escaped(box.label));
  }
  body_ += "</g>\n";
}

void Svg::line(double x1, double y1, double x2, double y2) {
  body_ += fmt::format(R"(<line x1="{}" y1="{}" x2="{}" y2="{}" stroke="#999999"/>)",
                       number(x1),
                       number(y1),
                       number(x2),
                       number(y2));
  body_ += '\n';
}

void Svg::write(const SvgText& text) {
  body_ += fmt::format(R"(<text x="{}" y="{}" text-anchor="{}">{}</text>)",
                       number(text.x),
                       number(text.y),
                       xml_escaped(text.anchor),
                       xml_escaped(text.text));
  body_ += '\n';
}

std::string Svg::text() const {
  std::string patterns;
  for (std::size_t kind = 1; kind < kHatchCount; ++kind) {
    if (used_[kind]) {
      patterns += fmt::format(
          R"(<pattern id="hatch{}" width="6" height="6" patternUnits="userSpaceOnUse"><path d="{}" stroke="#000000" stroke-opacity="0.45"/></pattern>)",
          kind,
          kTiles[kind]);
      patterns += '\n';
    }
  }
  return fmt::format(
      R"(<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{0}" height="{1}" viewBox="0 0 {0} {1}" font-family="monospace" font-size="{2}">
<defs>
{3}</defs>
<rect width="{0}" height="{1}" fill="#ffffff"/>
{4}</svg>
)",
      number(width_),
      number(height_),
      number(kFontSize),
      patterns,
      body_);
}

}  // namespace lockstep::view
