// Whole files: read at once, written under another name, synced and renamed, so that a file is
// there whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Devices such as /dev/zero never end.
inline constexpr std::size_t kMostFileBytes = std::size_t{4} << 30;

/// BadInputError of `component` for what is no readable file, or has more than `most` bytes.
std::string read_whole(const std::filesystem::path& path,
                       std::string_view component,
                       std::size_t most = kMostFileBytes);

/// Where a writer's text goes, piece by piece.
using TextSink = std::function<void(std::string_view)>;

/// A file that grows under another name until keep() gives it its own; without keep() nothing is
/// left. A link is followed. What is there and no file (/dev/null, a pipe) is written into and
/// stays what it is. NotSupportedError of `component` if it cannot be written.
class WholeFile {
 public:
  WholeFile(const std::filesystem::path& path, std::string_view component);
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  ~WholeFile();
  void write(std::string_view bytes);
  /// Syncs and renames.
  void keep();

 private:
  [[noreturn]] void fail(const std::string& why) const;
  void remove_partial() const;

  std::filesystem::path final_;
  std::filesystem::path path_;  ///< while it grows; final_ where that is no file
  std::string component_;
  int file_;
};

/// Writes `parts` one after the other. NotSupportedError if that cannot be; nothing is left then.
void write_whole(const std::filesystem::path& path,
                 const std::vector<std::string_view>& parts,
                 std::string_view component);

}  // namespace lockstep
