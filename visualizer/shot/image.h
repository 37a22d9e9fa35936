// Image: RGBA pixels, top row first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::shot {

struct Colour {
  std::uint8_t r = 0;
  std::uint8_t g = 0;
  std::uint8_t b = 0;
  std::uint8_t a = 255;
  bool operator==(const Colour&) const = default;
};

struct Image {
  int width = 0;
  int height = 0;
  std::vector<Colour> pixels;

  Image() = default;
  Image(int w, int h, Colour fill)
      : width(w),
        height(h),
        pixels(static_cast<std::size_t>(w) * static_cast<std::size_t>(h), fill) {}
  Colour& at(int x, int y) {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
  const Colour& at(int x, int y) const {
    return pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                  static_cast<std::size_t>(x)];
  }
};

/// Writes beside `path` and renames. NotSupportedError when it cannot be written.
void save_png(const std::string& path, const Image& image);
/// The same as bytes.
std::string encode_png(const Image& image);

}  // namespace lockstep::shot
