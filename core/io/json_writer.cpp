#include "core/io/json_writer.h"

#include <cmath>

#include <fmt/format.h>

#include "core/io/field_writer.h"

namespace lockstep {

void JsonWriter::begin_value(const char* key) {
  if (!filled_.empty()) {
    text_ += filled_.back() ? ",\n" : "\n";
    text_.append(2 * filled_.size(), ' ');
    filled_.back() = true;
  }
  if (key != nullptr) {
    text_ += json_string(key) + ": ";
  }
}

void JsonWriter::open(char bracket, const char* key) {
  begin_value(key);
  text_ += bracket;
  filled_.push_back(false);
}

void JsonWriter::close(char bracket) {
  const bool filled = filled_.back();
  filled_.pop_back();
  if (filled) {
    text_ += '\n';
    text_.append(2 * filled_.size(), ' ');
  }
  text_ += bracket;
  if (filled_.empty()) {
    text_ += '\n';
  }
}

void JsonWriter::raw(const char* key, std::string_view json) {
  begin_value(key);
  text_ += json;
}

void JsonWriter::field(const char* key, double value) {
  // JSON has no infinities; nothing we print is one.
  raw(key, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

void JsonWriter::field(const char* key, std::string_view value) {
  raw(key, json_string(value));
}

void JsonWriter::field(const char* key, const std::vector<int>& values) {
  raw(key, fmt::format("[{}]", fmt::join(values, ", ")));
}

void JsonWriter::field(const char* key, const std::vector<std::string>& values) {
  begin_array(key);
  for (const std::string& value : values) {
    element(value);
  }
  end_array();
}

void JsonWriter::element(std::string_view value) {
  begin_value(nullptr);
  text_ += json_string(value);
}

}  // namespace lockstep
