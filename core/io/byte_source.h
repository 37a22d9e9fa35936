// ByteSource: bytes one piece after the other, for readers of files that are too large to hold:
// from memory, or from a file that may be compressed by gzip (its first bytes say so, not its
// name).
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string_view>

namespace lockstep {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  /// Up to `size` bytes; 0 only at the end. BadInputError for what cannot be read or unpacked.
  virtual std::size_t read(char* into, std::size_t size) = 0;
};

/// `text` must outlive it.
std::unique_ptr<ByteSource> text_source(std::string_view text);

/// BadInputError of `component` for what is no readable file.
std::unique_ptr<ByteSource> file_source(const std::filesystem::path& path,
                                        std::string_view component);

}  // namespace lockstep
