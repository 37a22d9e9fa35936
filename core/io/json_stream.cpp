#include "core/io/json_stream.h"

#include <cstring>

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr std::size_t kBuffer = std::size_t{1} << 18;
constexpr std::size_t kShownPath = 200;
constexpr std::size_t kLongestScalar = 400;  // a double written without exponent takes 330
constexpr std::int64_t kMostBytes = std::int64_t{1} << 36;
constexpr unsigned kReplacement = 0xFFFD;

bool is_blank(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/// Of numbers and of words such as null and -Infinity.
bool is_scalar(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

bool is_number(std::string_view text) {
  std::size_t at = text[0] == '-' ? 1 : 0;
  bool digits = false;
  for (; at < text.size() && ((text[at] >= '0' && text[at] <= '9') || text[at] == '.'); ++at) {
    digits = digits || text[at] != '.';
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    at += at < text.size() && (text[at] == '-' || text[at] == '+') ? 1 : 0;
    const std::size_t exponent = text.find_first_not_of("0123456789", at);
    digits = digits && at < text.size();
    at = exponent == std::string_view::npos ? text.size() : exponent;
  }
  return digits && at == text.size();
}

bool is_word(std::string_view text) {
  for (const std::string_view word :
       {"true", "false", "null", "NaN", "nan", "Infinity", "-Infinity", "inf", "-inf", "-nan"}) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

}  // namespace

JsonStream::JsonStream(ByteSource& source, std::string_view name, std::string_view component)
    : source_(source), name_(printable(name, kShownPath)), component_(component), buffer_(kBuffer) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  // A source gives fewer bytes than asked for only at its end or between its own pieces.
  while (end_ < kByteOrderMark.size()) {
    const std::size_t got = source_.read(buffer_.data() + end_, buffer_.size() - end_);
    if (got == 0) {
      break;
    }
    end_ += got;
  }
  if (std::string_view(buffer_.data(), end_).substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    at_ = kByteOrderMark.size();
  }
}

void JsonStream::refuse_at(std::int64_t offset, std::string_view what) const {
  throw BadInputError(component_, fmt::format("{}: byte {}: {}", name_, offset, what));
}

/// Everything in the buffer has been taken.
bool JsonStream::fill() {
  before_ += static_cast<std::int64_t>(end_);
  at_ = 0;
  end_ = 0;
  if (before_ > kMostBytes) {
    refuse(fmt::format("the file has more than {} bytes", kMostBytes));
  }
  end_ = source_.read(buffer_.data(), buffer_.size());
  return end_ > 0;
}

char JsonStream::peek() {
  return at_ < end_ && buffer_[at_] > ' ' ? buffer_[at_] : peek_slowly();
}

char JsonStream::peek_slowly() {
  while (at_ < end_ || fill()) {
    const char c = buffer_[at_];
    if (!is_blank(c)) {
      if (c == '\0') {
        refuse("a zero byte");
      }
      return c;
    }
    ++at_;
  }
  return '\0';
}

void JsonStream::expect(char wanted, std::string_view what) {
  const char found = peek();
  if (found == '\0') {
    refuse(fmt::format("the file ends where {} should be", what));
  }
  if (found != wanted) {
    refuse(fmt::format("{} instead of {}", in_quotes(std::string_view(&found, 1)), what));
  }
  ++at_;
}

JsonStream::Kind JsonStream::kind() {
  const char c = peek();
  switch (c) {
    case '\0':
      return Kind::kEnd;
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    default:
      break;
  }
  if (c == '-' || (c >= '0' && c <= '9')) {
    return Kind::kNumber;
  }
  if (!is_scalar(c)) {
    refuse(fmt::format("{} instead of a value", in_quotes(std::string_view(&c, 1))));
  }
  return Kind::kWord;
}

void JsonStream::enter() {
  if (++depth_ > kDeepest) {
    refuse_at(offset() - 1, fmt::format("nested deeper than {} levels", kDeepest));
  }
  fresh_ = true;
}

void JsonStream::leave() {
  --depth_;
  fresh_ = false;
}

void JsonStream::begin_object() {
  expect('{', "an object");
  enter();
}

void JsonStream::begin_array() {
  expect('[', "a list");
  enter();
}

/// Past the comma, or the closing bracket.
bool JsonStream::next_of(char close) {
  if (!fresh_ && peek() == ',') {
    ++at_;
    fresh_ = true;
  }
  if (peek() == close) {
    ++at_;
    leave();
    return false;
  }
  if (!fresh_) {
    expect(',', close == ']' ? "a comma or ]" : "a comma or }");
  }
  fresh_ = false;
  return true;
}

bool JsonStream::next_member() {
  if (!next_of('}')) {
    return false;
  }
  if (peek() != '"') {
    expect('"', "a key or }");
  }
  // Where the colon is in the buffer too, the key stays where it is.
  key_ = read_string();
  if (at_ < end_ && buffer_[at_] == ':') {
    ++at_;
    return true;
  }
  if (key_.data() != kept_.data()) {
    kept_.assign(key_);
    key_ = kept_;
  }
  expect(':', "a colon");
  return true;
}

bool JsonStream::next_element() {
  return next_of(']');
}

std::string_view JsonStream::string() {
  if (peek() != '"') {
    refuse("a string should be here");
  }
  return read_string();
}

std::string_view JsonStream::number() {
  if (kind() != Kind::kNumber) {
    refuse("a number should be here");
  }
  return read_scalar();
}

std::string_view JsonStream::read_string() {
  fresh_ = false;
  const std::int64_t begin = offset();
  ++at_;
  if (const void* quote = std::memchr(buffer_.data() + at_, '"', end_ - at_)) {
    const char* first = buffer_.data() + at_;
    const auto length = static_cast<std::size_t>(static_cast<const char*>(quote) - first);
    if (std::memchr(first, '\\', length) == nullptr) {
      at_ += length + 1;
      return {first, std::min(length, kLongestString)};
    }
  }
  return read_long_string(begin);
}

/// With escapes, or over the end of the buffer.
std::string_view JsonStream::read_long_string(std::int64_t begin) {
  kept_.clear();
  while (at_ < end_ || fill()) {
    const char c = buffer_[at_++];
    if (c == '"') {
      return kept_;
    }
    if (c == '\\') {
      read_escape(take());
    } else {
      keep(c);
    }
  }
  refuse_at(begin, "the file ends in this string");
}

char JsonStream::take() {
  if (at_ == end_ && !fill()) {
    refuse("the file ends in a string");
  }
  return buffer_[at_++];
}

/// `c` stands behind a backslash.
void JsonStream::read_escape(char c) {
  switch (c) {
    case 'n':
      return keep('\n');
    case 't':
      return keep('\t');
    case 'r':
      return keep('\r');
    case 'b':
    case 'f':
      return keep(' ');
    case 'u':
      return read_code_point();
    case '"':
    case '\\':
    case '/':
      return keep(c);
    default:
      refuse(fmt::format("{} behind a backslash", in_quotes(std::string_view(&c, 1))));
  }
}

/// Two escapes make one character beyond 16 bits; half of such a pair means nothing.
void JsonStream::read_code_point() {
  const unsigned code = read_hex();
  if (code < 0xD800 || code >= 0xE000) {
    return keep_code_point(code);
  }
  if (code >= 0xDC00 || (at_ == end_ && !fill()) || buffer_[at_] != '\\') {
    return keep_code_point(kReplacement);
  }
  ++at_;
  const char next = take();
  if (next != 'u') {
    keep_code_point(kReplacement);
    return read_escape(next);
  }
  const unsigned low = read_hex();
  const bool pair = low >= 0xDC00 && low < 0xE000;
  keep_code_point(pair ? 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00) : kReplacement);
}

unsigned JsonStream::read_hex() {
  unsigned code = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = take();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
      refuse("not four hexadecimal digits behind \\u");
    }
    code = code * 16 + static_cast<unsigned>(digit);
  }
  return code;
}

void JsonStream::keep_code_point(unsigned code) {
  const auto tail = [&](unsigned shift) {
    keep(static_cast<char>(0x80U | ((code >> shift) & 0x3FU)));
  };
  if (code < 0x80) {
    keep(static_cast<char>(code));
  } else if (code < 0x800) {
    keep(static_cast<char>(0xC0U | (code >> 6U)));
    tail(0);
  } else if (code < 0x10000) {
    keep(static_cast<char>(0xE0U | (code >> 12U)));
    tail(6);
    tail(0);
  } else {
    keep(static_cast<char>(0xF0U | (code >> 18U)));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string_view JsonStream::read_scalar() {
  fresh_ = false;
  const std::int64_t begin = offset();
  std::size_t stop = at_;
  while (stop < end_ && is_scalar(buffer_[stop])) {
    ++stop;
  }
  std::string_view text(buffer_.data() + at_, stop - at_);
  at_ = stop;
  if (stop == end_) {
    kept_.assign(text);
    while ((at_ < end_ || fill()) && is_scalar(buffer_[at_]) && kept_.size() < kLongestScalar) {
      kept_ += buffer_[at_++];
    }
    text = kept_;
  }
  if (!is_number(text) && !is_word(text)) {
    refuse_at(begin, fmt::format("{} is no value", in_quotes(text)));
  }
  return text;
}

void JsonStream::skip() {
  switch (kind()) {
    case Kind::kObject:
      begin_object();
      while (next_member()) {
        skip();
      }
      return;
    case Kind::kArray:
      begin_array();
      while (next_element()) {
        skip();
      }
      return;
    case Kind::kString:
      read_string();
      return;
    case Kind::kNumber:
    case Kind::kWord:
      read_scalar();
      return;
    case Kind::kEnd:
      refuse("the file ends where a value should be");
  }
}

bool JsonStream::only_commas_left() {
  if (!fresh_ && peek() == ',') {
    ++at_;
    fresh_ = true;
  }
  return peek() == '\0';
}

}  // namespace lockstep
