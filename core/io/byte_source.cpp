#include "core/io/byte_source.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fmt/format.h>
#include <zlib.h>

#include "core/error.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr unsigned kUnpackBuffer = 1U << 18U;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // gzread counts in unsigned and int
constexpr std::size_t kShownPath = 200;

class TextSource : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : rest_(text) {}
  std::size_t read(char* into, std::size_t size) override {
    const std::size_t count = std::min(size, rest_.size());
    std::copy_n(rest_.data(), count, into);
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

/// gzread gives the bytes of a plain file as they are.
class FileSource : public ByteSource {
 public:
  FileSource(const std::filesystem::path& path, std::string_view component)
      : name_(printable(path.string(), kShownPath)), component_(component) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      refuse("is a directory, not a file");
    }
    file_ = gzopen(path.c_str(), "rb");
    if (file_ == nullptr) {
      refuse(fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    gzbuffer(file_, kUnpackBuffer);
  }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  ~FileSource() override {
    if (file_ != nullptr) {
      gzclose(file_);
    }
  }

  std::size_t read(char* into, std::size_t size) override {
    const int got = gzread(file_, into, static_cast<unsigned>(std::min(size, kMostAtOnce)));
    int code = Z_OK;
    const char* message = gzerror(file_, &code);
    // A file that ends in the middle of its packed bytes is told by Z_BUF_ERROR alone.
    if (got < 0 || (got == 0 && code == Z_BUF_ERROR)) {
      refuse(code == Z_ERRNO       ? fmt::format("cannot be read: {}", std::strerror(errno))
             : code == Z_BUF_ERROR ? fmt::format("byte {}: gzip: the file is cut short", place())
                                   : fmt::format("byte {}: gzip: {}", place(), tail(message)));
    }
    return static_cast<std::size_t>(got);
  }

 private:
  long long place() const { return static_cast<long long>(gzoffset(file_)); }
  /// zlib: "path: invalid block type".
  static std::string tail(const char* message) {
    const std::string_view text(message);
    const std::size_t colon = text.rfind(": ");
    return printable(colon == std::string_view::npos ? text : text.substr(colon + 2), kShownPath);
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw BadInputError(component_, fmt::format("{}: {}", name_, why));
  }

  std::string name_;
  std::string component_;
  gzFile file_ = nullptr;
};

}  // namespace

std::unique_ptr<ByteSource> text_source(std::string_view text) {
  return std::make_unique<TextSource>(text);
}

std::unique_ptr<ByteSource> file_source(const std::filesystem::path& path,
                                        std::string_view component) {
  return std::make_unique<FileSource>(path, component);
}

}  // namespace lockstep
