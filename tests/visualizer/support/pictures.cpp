#include "tests/visualizer/support/pictures.h"

#include <algorithm>
#include <cstdlib>

#include <png.h>

#include "tests/support/catch.h"

namespace lockstep::test {

shot::Image read_png(const std::string& path) {
  INFO(path);
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_file(&header, path.c_str()) != 0);
  header.format = PNG_FORMAT_RGBA;
  shot::Image image(static_cast<int>(header.width), static_cast<int>(header.height), {});
  static_assert(sizeof(shot::Colour) == 4);
  REQUIRE(png_image_finish_read(&header, nullptr, image.pixels.data(), 0, nullptr) != 0);
  return image;
}

Difference difference(const shot::Image& one, const shot::Image& other) {
  Difference result;
  result.same_size = one.width == other.width && one.height == other.height;
  if (!result.same_size) {
    return result;
  }
  result.picture = one;
  double sum = 0;
  std::size_t far = 0;
  for (std::size_t i = 0; i < one.pixels.size(); ++i) {
    const shot::Colour& a = one.pixels[i];
    const shot::Colour& b = other.pixels[i];
    const int r = std::abs(a.r - b.r);
    const int g = std::abs(a.g - b.g);
    const int blue = std::abs(a.b - b.b);
    const int worst = std::max({r, g, blue});
    sum += r + g + blue;
    far += worst > kFar ? 1U : 0U;
    result.worst = std::max(result.worst, worst);
    const auto grey = static_cast<std::uint8_t>((a.r + a.g + a.b) / 12 + 96);
    const auto red = static_cast<std::uint8_t>(std::min(255, 128 + worst));
    result.picture.pixels[i] =
        worst == 0 ? shot::Colour{grey, grey, grey, 255} : shot::Colour{red, 0, 0, 255};
  }
  const auto pixels = static_cast<double>(std::max<std::size_t>(1, one.pixels.size()));
  result.mean = sum / (3 * pixels);
  result.far = static_cast<double>(far) / pixels;
  return result;
}

}  // namespace lockstep::test
