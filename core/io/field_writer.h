// The writing visitor over the table of keys (core/fields.h): every field in table order, two
// spaces of indentation, lists on one line. Numbers are written with as many digits as reading them
// back exactly takes, so a file that is written and read is the same scenario.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "core/check.h"
#include "core/fields.h"
#include "core/names.h"

namespace lockstep {

/// A JSON string with quotes; bytes above 127 are kept, they are UTF-8 already.
inline std::string json_string(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (c >= 0 && c < ' ') {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

inline std::string json_text(bool value) {
  return value ? "true" : "false";
}
inline std::string json_text(std::int64_t value) {
  return std::to_string(value);
}
inline std::string json_text(double value) {
  LOCKSTEP_CHECK(std::isfinite(value), fmt::format("{} has no JSON form", value));
  return fmt::format("{}", value);
}
inline std::string json_text(const std::string& value) {
  return json_string(value);
}
template <typename Enum>
requires std::is_enum_v<Enum> std::string json_text(Enum value) {
  return json_string(name_of(value));
}
template <typename T>
std::string json_text(const std::optional<T>& value) {
  return value ? json_text(*value) : "null";
}
template <typename T>
std::string json_text(const std::vector<T>& values) {
  std::string result = "[";
  for (const T& value : values) {
    result += (result.size() > 1 ? ", " : "") + json_text(value);
  }
  return result + "]";
}

class FieldWriter {
 public:
  explicit FieldWriter(std::size_t depth = 1) : indent_(2 * depth, ' ') {}

  template <typename T>
  void field(const char* key, const T& value, const char* /*help*/) {
    line(key, json_text(value));
  }
  template <typename T, typename Range>
  void field(const char* key, const T& value, Range /*range*/, const char* /*help*/) {
    line(key, json_text(value));
  }
  template <typename Spec>
  void section(const char* key, const Spec& spec, const char* /*help*/) {
    line(key, object(spec));
  }
  template <typename Spec>
  void section(const char* key, const std::vector<Spec>& specs, const char* /*help*/) {
    std::string list = "[";
    for (const Spec& spec : specs) {
      list += (list.size() > 1 ? ", " : "") + object(spec);
    }
    line(key, list + "]");
  }
  void line(const char* key, const std::string& value) {
    body_ += (body_.empty() ? "" : ",\n") + indent_ + json_string(key) + ": " + value;
  }

  /// The object with everything that was visited.
  std::string text() const { return "{\n" + body_ + "\n" + indent_.substr(2) + "}"; }

 private:
  template <typename Spec>
  std::string object(const Spec& spec) const {
    FieldWriter inner(indent_.size() / 2 + 1);
    visit_fields(inner, spec);
    return inner.text();
  }

  std::string indent_;
  std::string body_;
};

}  // namespace lockstep
