#include "visualizer/shot/rasteriser.h"

#include <algorithm>
#include <array>
#include <vector>

#include "tests/support/catch.h"

using namespace lockstep::shot;

namespace {

constexpr Colour kBlack{0, 0, 0, 255};
constexpr Colour kWhite{255, 255, 255, 255};
const std::array<unsigned char, 1> kOpaque{255};

Texture solid() {
  return {kOpaque.data(), 1, 1};
}

ImDrawVert vertex(float x, float y, ImU32 colour, float u = 0.5F, float v = 0.5F) {
  ImDrawVert result;
  result.pos = ImVec2(x, y);
  result.uv = ImVec2(u, v);
  result.col = colour;
  return result;
}

int count(const Image& image, const Colour& colour) {
  return static_cast<int>(std::count(image.pixels.begin(), image.pixels.end(), colour));
}

}  // namespace

TEST_CASE("a right triangle of 4 by 4 covers the 6 pixels whose centres lie below its diagonal") {
  Image image(8, 8, kBlack);
  draw_triangle(vertex(0, 0, IM_COL32_WHITE),
                vertex(4, 0, IM_COL32_WHITE),
                vertex(0, 4, IM_COL32_WHITE),
                solid(),
                {0, 0, 8, 8},
                image);
  // Centres (x + 1/2, y + 1/2) with x + y + 1 < 4: 3 + 2 + 1; those with x + y + 1 = 4 lie on the
  // diagonal, which is neither a top nor a left edge.
  CHECK(count(image, kWhite) == 6);
  CHECK(image.at(0, 0) == kWhite);
  CHECK(image.at(2, 0) == kWhite);
  CHECK(image.at(3, 0) == kBlack);
}

TEST_CASE("two triangles with a common edge cover every pixel of their square once") {
  const ImU32 half = IM_COL32(255, 255, 255, 128);
  for (const bool flip : {false, true}) {
    Image image(8, 8, kBlack);
    const ImDrawVert a = vertex(1, 1, half);
    const ImDrawVert b = vertex(6, 1, half);
    const ImDrawVert c = vertex(6, 6, half);
    const ImDrawVert d = vertex(1, 6, half);
    const Clip clip{0, 0, 8, 8};
    draw_triangle(a, b, flip ? d : c, solid(), clip, image);
    draw_triangle(flip ? b : a, c, d, solid(), clip, image);
    // 255 * 128/255 over black, once; twice would be brighter.
    CHECK(count(image, {128, 128, 128, 255}) == 25);
    CHECK(count(image, kBlack) == 64 - 25);
  }
}

TEST_CASE("a triangle is the same whichever way round its corners are given") {
  Image one(8, 8, kBlack);
  Image other(8, 8, kBlack);
  const ImDrawVert a = vertex(0.3F, 0.2F, IM_COL32_WHITE);
  const ImDrawVert b = vertex(7.1F, 2.6F, IM_COL32_WHITE);
  const ImDrawVert c = vertex(2.4F, 7.7F, IM_COL32_WHITE);
  draw_triangle(a, b, c, solid(), {0, 0, 8, 8}, one);
  draw_triangle(a, c, b, solid(), {0, 0, 8, 8}, other);
  CHECK(one.pixels == other.pixels);
  CHECK(count(one, kWhite) > 0);
}

TEST_CASE("nothing is drawn outside the clip rectangle") {
  Image image(8, 8, kBlack);
  draw_triangle(vertex(-100, -100, IM_COL32_WHITE),
                vertex(300, -100, IM_COL32_WHITE),
                vertex(-100, 300, IM_COL32_WHITE),
                solid(),
                {2, 3, 5, 4},
                image);
  CHECK(count(image, kWhite) == 3);
  CHECK(image.at(2, 3) == kWhite);
  CHECK(image.at(4, 3) == kWhite);
}

TEST_CASE("an alpha of a fifth blends a fifth of red over blue") {
  Image image(1, 1, {0, 0, 255, 255});
  const ImU32 red = IM_COL32(255, 0, 0, 51);  // 51 / 255 = 1/5
  draw_triangle(
      vertex(-4, -4, red), vertex(8, -4, red), vertex(-4, 8, red), solid(), {0, 0, 1, 1}, image);
  CHECK(image.at(0, 0) == Colour{51, 0, 204, 255});
}

TEST_CASE("a texture is read linearly between the centres of its texels") {
  // Two texels, 0 and 255; the picture is 4 wide, so its pixel centres lie at 1/4, 3/4, 5/4 and 7/4
  // texels: a quarter before the first centre, a quarter and three quarters between, behind the
  // last.
  const std::array<unsigned char, 2> texels{0, 255};
  const Texture texture{texels.data(), 2, 1};
  Image image(4, 1, kBlack);
  const Clip clip{0, 0, 4, 1};
  const ImU32 white = IM_COL32_WHITE;
  const ImDrawVert a = vertex(0, 0, white, 0, 0);
  const ImDrawVert b = vertex(4, 0, white, 1, 0);
  const ImDrawVert c = vertex(4, 1, white, 1, 1);
  const ImDrawVert d = vertex(0, 1, white, 0, 1);
  draw_triangle(a, b, c, texture, clip, image);
  draw_triangle(a, c, d, texture, clip, image);
  CHECK(int(image.at(0, 0).r) == 0);
  CHECK(int(image.at(1, 0).r) == 64);   // 255 / 4 = 63.75
  CHECK(int(image.at(2, 0).r) == 191);  // 191.25
  CHECK(int(image.at(3, 0).r) == 255);
}

TEST_CASE("corners of three colours meet in their mean at the centroid") {
  // (0.5 + 9.5 + 0.5) / 3 = 3.5 both ways: the centre of pixel (3, 3).
  Image image(16, 16, kBlack);
  draw_triangle(vertex(0.5F, 0.5F, IM_COL32(255, 0, 0, 255)),
                vertex(9.5F, 0.5F, IM_COL32(0, 255, 0, 255)),
                vertex(0.5F, 9.5F, IM_COL32(0, 0, 255, 255)),
                solid(),
                {0, 0, 16, 16},
                image);
  CHECK(image.at(3, 3) == Colour{85, 85, 85, 255});
}

TEST_CASE("a PNG begins with its signature and holds its size") {
  const std::string bytes = encode_png(Image(3, 2, kWhite));
  CHECK(bytes.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(bytes.substr(12, 4) == "IHDR");
  CHECK(bytes.substr(16, 8) == std::string("\0\0\0\x03\0\0\0\x02", 8));
}
