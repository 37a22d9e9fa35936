#include <csetjmp>

#include <png.h>

#include "core/error.h"
#include "core/io/files.h"
#include "visualizer/shot/image.h"

namespace lockstep::shot {
namespace {

void append(png_structp png, png_bytep data, png_size_t length) {
  auto* const text = static_cast<std::string*>(png_get_io_ptr(png));
  text->append(reinterpret_cast<const char*>(data), length);
}

void fail(png_structp, png_const_charp message) {
  throw InternalError("png", message);
}

void ignore(png_structp, png_const_charp) {}

/// libpng's two objects, freed together.
struct Writer {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, fail, ignore);
  png_infop info = png == nullptr ? nullptr : png_create_info_struct(png);

  Writer() = default;
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;
  ~Writer() { png_destroy_write_struct(&png, &info); }
};

}  // namespace

std::string encode_png(const Image& image) {
  Writer writer;
  if (writer.info == nullptr) {
    throw InternalError("png", "libpng does not start");
  }
  std::string text;
  png_set_write_fn(writer.png, &text, append, nullptr);
  png_set_IHDR(writer.png,
               writer.info,
               static_cast<png_uint_32>(image.width),
               static_cast<png_uint_32>(image.height),
               8,
               PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(writer.png, writer.info);
  std::vector<png_byte> row(static_cast<std::size_t>(image.width) * 3);
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const Colour& colour = image.at(x, y);
      const std::size_t at = static_cast<std::size_t>(x) * 3;
      row[at] = colour.r;
      row[at + 1] = colour.g;
      row[at + 2] = colour.b;
    }
    png_write_row(writer.png, row.data());
  }
  png_write_end(writer.png, writer.info);
  return text;
}

void save_png(const std::string& path, const Image& image) {
  write_whole(path, {encode_png(image)}, "shot");
}

}  // namespace lockstep::shot
