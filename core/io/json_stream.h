// JsonStream: JSON pulled value by value out of a stream, for files of hundreds of megabytes of
// which most is skipped. Memory is one buffer and the longest kept string.
//
//     json.begin_object();
//     while (json.next_member())          // json.key() until the next call
//       if (json.key() == "ts") time = json.number(); else json.skip();
//
// It is as lenient as Perfetto's importer: trailing commas, raw control bytes in strings, NaN.
// Everything else that is no JSON is a BadInputError "file: byte N: what". For small files that
// must be strict: core/io/json_reader.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/byte_source.h"

namespace lockstep {

class JsonStream {
 public:
  enum class Kind : std::uint8_t { kObject, kArray, kString, kNumber, kWord, kEnd };
  static constexpr std::size_t kLongestString = std::size_t{1} << 16;  ///< the rest is dropped
  static constexpr int kDeepest = 100;

  JsonStream(ByteSource& source, std::string_view name, std::string_view component);

  /// Of the value that comes next; kEnd at the end of the file.
  Kind kind();
  void begin_object();
  /// Reads the next key, or the closing bracket: false.
  bool next_member();
  std::string_view key() const { return key_; }
  void begin_array();
  bool next_element();
  /// The value as its text; of a string what it means. Good until the next call.
  std::string_view string();
  std::string_view number();
  void skip();

  /// In an array whose closing bracket may be missing: nothing but blanks and a comma is left.
  bool only_commas_left();
  [[noreturn]] void refuse(std::string_view what) const { refuse_at(offset(), what); }
  [[noreturn]] void refuse_at(std::int64_t offset, std::string_view what) const;
  /// Bytes read before the next value, unpacked ones.
  std::int64_t offset() const { return before_ + static_cast<std::int64_t>(at_); }
  /// The same, behind blanks.
  std::int64_t next_offset() {
    peek();
    return offset();
  }

 private:
  /// The next byte that is no blank, not taken; 0 at the end.
  char peek();
  char peek_slowly();
  void expect(char wanted, std::string_view what);
  bool next_of(char close);
  void enter();
  void leave();
  bool fill();
  std::string_view read_string();
  std::string_view read_long_string(std::int64_t begin);
  std::string_view read_scalar();
  void read_escape(char c);
  void read_code_point();
  unsigned read_hex();
  char take();
  void keep(char c) {
    if (kept_.size() < kLongestString) {
      kept_ += c;
    }
  }
  void keep_code_point(unsigned code);

  ByteSource& source_;
  std::string name_;
  std::string component_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::int64_t before_ = 0;  ///< bytes that have left the buffer
  int depth_ = 0;
  bool fresh_ = true;  ///< behind an opening bracket: no comma comes
  std::string_view key_;
  std::string kept_;
};

}  // namespace lockstep
