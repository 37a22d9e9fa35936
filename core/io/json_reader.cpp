#include "core/io/json_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr std::size_t kShownPath = 200;
constexpr std::size_t kShownMessage = 160;

struct Position {
  std::int32_t line = 1;
  std::int32_t column = 1;
};

/// Follows the parser through the text. nlohmann reports events without positions, but between two
/// events there are only blanks, commas and colons, so the next token starts right after those.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      at_ = kByteOrderMark.size();
    }
  }

  /// Moves over the next token and returns where it began.
  Position next_token() {
    while (at_ < text_.size() && kBetween.find(text_[at_]) != std::string_view::npos) {
      step();
    }
    const Position begin = position_;
    if (at_ < text_.size()) {
      skip_token(text_[at_]);
    }
    return begin;
  }

  /// Moves to the byte at `offset`, for errors.
  Position move_to(std::size_t offset) {
    while (at_ < std::min(offset, text_.size())) {
      step();
    }
    return position_;
  }

 private:
  static constexpr std::string_view kBetween = " \t\r\n,:";
  static constexpr std::string_view kBrackets = "{}[]";

  void skip_token(char first) {
    step();
    if (kBrackets.find(first) != std::string_view::npos) {
      return;
    }
    if (first == '"') {
      skip_string();
      return;
    }
    while (at_ < text_.size() && kBetween.find(text_[at_]) == std::string_view::npos &&
           kBrackets.find(text_[at_]) == std::string_view::npos) {
      step();  // number or literal
    }
  }

  void skip_string() {
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        step();
      }
      step();
    }
    step();
  }

  void step() {
    if (at_ >= text_.size()) {
      return;
    }
    if (text_[at_] == '\n') {
      ++position_.line;
      position_.column = 1;
    } else {
      ++position_.column;
    }
    ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Position position_;
};

/// Receives the parser's events and builds the tree. Returning true means "go on"; refusals throw.
class TreeBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  TreeBuilder(std::string_view text, std::string_view source, std::string_view component)
      : cursor_(text), error_cursor_(text), source_(source), component_(component) {}

  JsonValue take() { return std::move(root_); }

  bool null() override { return add(next(JsonValue::Kind::kNull)); }
  bool boolean(bool value) override {
    JsonValue json = next(JsonValue::Kind::kBool);
    json.boolean = value;
    return add(std::move(json));
  }
  bool number_integer(number_integer_t value) override {
    JsonValue json = next(JsonValue::Kind::kInteger);
    json.integer = value;
    json.real = static_cast<double>(value);
    return add(std::move(json));
  }
  bool number_unsigned(number_unsigned_t value) override {
    const bool fits = value <= static_cast<number_unsigned_t>(INT64_MAX);
    JsonValue json = next(fits ? JsonValue::Kind::kInteger : JsonValue::Kind::kReal);
    json.integer = fits ? static_cast<std::int64_t>(value) : 0;
    json.real = static_cast<double>(value);
    return add(std::move(json));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    JsonValue json = next(JsonValue::Kind::kReal);
    json.real = value;
    return add(std::move(json));
  }
  bool string(string_t& value) override {
    JsonValue json = next(JsonValue::Kind::kString);
    json.string = std::move(value);
    return add(std::move(json));
  }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON text has none
  bool start_object(std::size_t /*size*/) override { return open(JsonValue::Kind::kObject); }
  bool start_array(std::size_t /*size*/) override { return open(JsonValue::Kind::kArray); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const Position at = cursor_.next_token();
    Frame& frame = frames_.back();
    if (!frame.names.insert(name).second) {
      fail(at, fmt::format("duplicate key {}", printable(name, kShownMessage)));
    }
    frame.value.keys.push_back({std::move(name), at.line, at.column});
    return true;
  }

  bool parse_error(std::size_t position,
                   const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    fail(error_cursor_.move_to(position > 0 ? position - 1 : 0), explain(error.what()));
  }

 private:
  struct Frame {
    JsonValue value;
    std::unordered_set<std::string> names;
  };

  [[noreturn]] void fail(Position at, const std::string& message) const {
    throw BadInputError(component_,
                        fmt::format("{}:{}:{}: {}", source_, at.line, at.column, message));
  }

  /// nlohmann: "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error
  /// while parsing value - invalid literal; last read: 'x'". The place is ours already.
  static std::string explain(std::string_view what) {
    constexpr std::string_view kSyntax = "syntax error while parsing ";
    const std::size_t syntax = what.find(kSyntax);
    const std::size_t bracket = what.find("] ");
    if (syntax != std::string_view::npos) {
      what.remove_prefix(syntax + kSyntax.size());
    } else if (bracket != std::string_view::npos) {
      what.remove_prefix(bracket + 2);
    }
    return "not valid JSON: " + printable(what, kShownMessage);
  }

  JsonValue next(JsonValue::Kind kind) {
    const Position at = cursor_.next_token();
    if (++count_ > kMaxJsonValues) {
      fail(at, fmt::format("more than {} values", kMaxJsonValues));
    }
    JsonValue json;
    json.kind = kind;
    json.line = at.line;
    json.column = at.column;
    return json;
  }

  bool add(JsonValue json) {
    if (frames_.empty()) {
      root_ = std::move(json);
    } else {
      frames_.back().value.items.push_back(std::move(json));
    }
    return true;
  }

  bool open(JsonValue::Kind kind) {
    JsonValue json = next(kind);
    if (frames_.size() >= kMaxJsonDepth) {
      fail({json.line, json.column}, fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    }
    frames_.push_back({std::move(json), {}});
    return true;
  }

  bool close() {
    cursor_.next_token();
    JsonValue json = std::move(frames_.back().value);
    frames_.pop_back();
    return add(std::move(json));
  }

  Cursor cursor_;
  Cursor error_cursor_;
  std::string_view source_;
  std::string_view component_;
  std::vector<Frame> frames_;
  JsonValue root_;
  std::size_t count_ = 0;
};

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

const JsonValue* JsonValue::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].name == key) {
      return &items[i];
    }
  }
  return nullptr;
}

std::string JsonValue::description() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return boolean ? "true" : "false";
    case Kind::kInteger:
      return fmt::format("the number {}", integer);
    case Kind::kReal:
      return fmt::format("the number {}", real);
    case Kind::kString:
      return fmt::format("the string \"{}\"", printable(string, 60));
    case Kind::kArray:
      return "a list";
    case Kind::kObject:
      return "an object";
  }
  return "?";
}

JsonValue parse_json(std::string_view text, std::string_view source, std::string_view component) {
  const std::string name = printable(source, kShownPath);
  if (text.size() > kMaxJsonBytes) {
    throw BadInputError(component, fmt::format("{}: larger than {} bytes", name, kMaxJsonBytes));
  }
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) {
    throw BadInputError(component, fmt::format("{}:1:1: the file is empty", name));
  }
  TreeBuilder builder(text, name, component);
  // nlohmann takes a zero byte for the end of the text and would not see what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    const Position at = Cursor(text).move_to(zero);
    throw BadInputError(
        component, fmt::format("{}:{}:{}: not valid JSON: a zero byte", name, at.line, at.column));
  }
  nlohmann::json::sax_parse(text, &builder);
  return builder.take();
}

std::string read_text_file(const std::string& path, std::string_view component) {
  const std::string name = printable(path, kShownPath);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw BadInputError(component, fmt::format("{}: is a directory, not a file", name));
  }
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (!file) {
    throw BadInputError(component,
                        fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  std::string text;
  char buffer[65536];
  std::size_t got = 0;
  while ((got = std::fread(buffer, 1, sizeof buffer, file.get())) > 0) {
    text.append(buffer, got);
    if (text.size() > kMaxJsonBytes) {
      throw BadInputError(component, fmt::format("{}: larger than {} bytes", name, kMaxJsonBytes));
    }
  }
  if (std::ferror(file.get()) != 0) {
    throw BadInputError(component,
                        fmt::format("{}: cannot be read: {}", name, std::strerror(errno)));
  }
  return text;
}

}  // namespace lockstep
