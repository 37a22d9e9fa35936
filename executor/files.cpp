#include "executor/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.h"

namespace lockstep::exec {
namespace {

/// A file descriptor that is closed, and the file removed unless it was kept.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644)) {
    if (file_ < 0) {
      fail("cannot be created");
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_ >= 0) {
      ::close(file_);
      std::error_code ignored;
      std::filesystem::remove(path_, ignored);
    }
  }
  void write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(file_, bytes.data(), bytes.size());
      if (n < 0) {
        fail("cannot be written");
      }
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void keep_as(const std::filesystem::path& path) {
    if (::fsync(file_) != 0) {
      fail("cannot be synced");
    }
    ::close(std::exchange(file_, -1));
    std::error_code error;
    std::filesystem::rename(path_, path, error);
    if (error) {
      std::filesystem::remove(path_);
      throw NotSupportedError(
          "files", fmt::format("{}: cannot be written: {}", path.string(), error.message()));
    }
  }

 private:
  [[noreturn]] void fail(const char* what) const {
    throw NotSupportedError("files",
                            fmt::format("{}: {}: {}", path_.string(), what, std::strerror(errno)));
  }

  std::filesystem::path path_;
  int file_;
};

}  // namespace

namespace {

/// Whole files lie in memory; devices such as /dev/zero never end.
constexpr std::size_t kMostBytes = std::size_t{4} << 30;

}  // namespace

std::string read_whole(const std::filesystem::path& path, std::string_view component) {
  std::error_code error;
  const bool folder = std::filesystem::is_directory(path, error);
  std::ifstream file(path, std::ios::binary);
  if (folder || !file) {
    throw BadInputError(component,
                        fmt::format("{}: cannot be read: {}",
                                    path.string(),
                                    folder ? "it is a directory" : std::strerror(errno)));
  }
  std::string bytes;
  std::vector<char> chunk(std::size_t{1} << 20);
  while (file.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || file.gcount() > 0) {
    bytes.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
    if (bytes.size() > kMostBytes) {
      throw BadInputError(component,
                          fmt::format("{}: has more than {} bytes", path.string(), kMostBytes));
    }
  }
  return bytes;
}

void write_whole(const std::filesystem::path& path, const std::vector<std::string_view>& parts) {
  TemporaryFile file(path.string() + ".partial");
  for (const std::string_view part : parts) {
    file.write(part);
  }
  file.keep_as(path);
}

}  // namespace lockstep::exec
