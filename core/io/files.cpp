#include "core/io/files.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/error.h"

namespace lockstep {
WholeFile::WholeFile(const std::filesystem::path& path, std::string_view component)
    : final_(path),
      path_(path.string() + ".partial"),
      component_(component),
      file_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644)) {
  if (file_ < 0) {
    fail(std::strerror(errno));
  }
}

WholeFile::~WholeFile() {
  if (file_ >= 0) {
    ::close(file_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
}

void WholeFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file_, bytes.data(), bytes.size());
    if (n < 0) {
      fail(std::strerror(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

void WholeFile::keep() {
  if (::fsync(file_) != 0) {
    fail(std::strerror(errno));
  }
  ::close(std::exchange(file_, -1));
  std::error_code error;
  std::filesystem::rename(path_, final_, error);
  if (error) {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    fail(error.message());
  }
}

void WholeFile::fail(const std::string& why) const {
  throw NotSupportedError(component_,
                          fmt::format("{}: cannot be written: {}", final_.string(), why));
}

std::string read_whole(const std::filesystem::path& path,
                       std::string_view component,
                       std::size_t most) {
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
    if (bytes.size() > most) {
      throw BadInputError(component,
                          fmt::format("{}: has more than {} bytes", path.string(), most));
    }
  }
  return bytes;
}

void write_whole(const std::filesystem::path& path,
                 const std::vector<std::string_view>& parts,
                 std::string_view component) {
  WholeFile file(path, component);
  for (const std::string_view part : parts) {
    file.write(part);
  }
  file.keep();
}

}  // namespace lockstep
