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
namespace {

/// Whether another file may take its place.
bool is_file_or_nothing(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
}

/// Where the links of `path` lead if that is a file or nothing yet; else `path` itself, since links
/// of open files (/dev/stdout) name no path.
std::filesystem::path target_of(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::path target = path;
  const bool follow = is_file_or_nothing(path);
  for (int links = 0; follow && links < 40 && std::filesystem::is_symlink(target, error); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

}  // namespace

WholeFile::WholeFile(const std::filesystem::path& path, std::string_view component)
    : final_(target_of(path)),
      path_(is_file_or_nothing(final_) ? final_.string() + ".partial" : final_.string()),
      component_(component),
      file_(::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644)) {
  if (file_ < 0) {
    fail(std::strerror(errno));
  }
}

WholeFile::~WholeFile() {
  if (file_ >= 0) {
    ::close(file_);
    remove_partial();
  }
}

void WholeFile::remove_partial() const {
  if (path_ != final_) {
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
  if (path_ == final_) {
    ::close(std::exchange(file_, -1));
    return;
  }
  if (::fsync(file_) != 0) {
    fail(std::strerror(errno));
  }
  ::close(std::exchange(file_, -1));
  std::error_code error;
  std::filesystem::rename(path_, final_, error);
  if (error) {
    remove_partial();
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
