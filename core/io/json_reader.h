// Reads JSON text into a small tree in which every value knows its line and column, and refuses
// what configuration files must not be: duplicate keys, more than 64 levels, more than 50,000
// values, more than 8 MiB, bytes that are not UTF-8, anything after the value. Every refusal is a
// BadInputError of one line that begins with the place, "file:line:column: ". The parser itself is
// nlohmann-json, which only json_reader.cpp includes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

inline constexpr std::size_t kMaxJsonBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 50'000;

struct JsonKey {
  std::string name;
  std::int32_t line = 0;
  std::int32_t column = 0;
};

struct JsonValue {
  enum class Kind : std::uint8_t { kNull, kBool, kInteger, kReal, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::int32_t line = 0;    ///< of its first character, from 1
  std::int32_t column = 0;  ///< in bytes, from 1
  std::int64_t integer = 0;
  double real = 0;  ///< also of an integer, and of integers beyond 64 bits, which are kReal
  std::string string;
  std::vector<JsonKey> keys;     ///< of an object, in file order
  std::vector<JsonValue> items;  ///< elements of an array, values of an object

  /// The value of `key`, or null when this is no object or has no such key.
  const JsonValue* find(std::string_view key) const;
  /// What it is, for messages: "a string", "an object", "the number 3".
  std::string description() const;
};

/// Parses `text`; `source` (a file name) and `component` are for the error's text.
JsonValue parse_json(std::string_view text, std::string_view source, std::string_view component);

/// The whole file, at most kMaxJsonBytes; a directory or a missing file is a BadInputError.
std::string read_text_file(const std::string& path, std::string_view component);

}  // namespace lockstep
