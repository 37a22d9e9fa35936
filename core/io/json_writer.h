// JsonWriter: writes one JSON document, value by value, in the order of the calls. Objects stand on
// lines of their own, lists of numbers on one line.
//
//     JsonWriter json;
//     json.begin_object();
//     json.field("fits", true);
//     json.begin_array("ranks");
//     ...
//     json.end_array();
//     json.end_object();
//     json.text();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

class JsonWriter {
 public:
  void begin_object() { open('{', nullptr); }
  void begin_object(const char* key) { open('{', key); }
  void end_object() { close('}'); }
  void begin_array() { open('[', nullptr); }
  void begin_array(const char* key) { open('[', key); }
  void end_array() { close(']'); }

  void field(const char* key, bool value) { raw(key, value ? "true" : "false"); }
  void field(const char* key, std::int64_t value) { raw(key, std::to_string(value)); }
  void field(const char* key, int value) { raw(key, std::to_string(value)); }
  void field(const char* key, double value);
  void field(const char* key, std::string_view value);
  void field(const char* key, const char* value) { field(key, std::string_view(value)); }
  void field(const char* key, const std::vector<int>& values);
  void field(const char* key, const std::vector<std::string>& values);
  /// Text that is JSON already.
  void raw(const char* key, std::string_view json);
  /// An element of a list.
  void element(std::string_view value);

  /// The document so far; after the last end_object() it ends with a newline.
  const std::string& text() const { return text_; }
  /// Moves the text out, so that a long document can be printed piece by piece.
  std::string take() { return std::exchange(text_, {}); }

 private:
  void open(char bracket, const char* key);
  void close(char bracket);
  void begin_value(const char* key);

  std::string text_;
  std::vector<bool> filled_;  ///< by open bracket: it has a value
};

}  // namespace lockstep
