#include "core/io/json_reader.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

JsonValue parse(std::string_view text) {
  return parse_json(text, "f.json", "test");
}

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("Values know the line and column where they begin") {
  const JsonValue root = parse(
      "{\n  \"a\": 12,\n  \"bb\" :\t[true, \"x\\\"]\", -1.5e3],\n"
      "\"c\":{\"d\":null}}");
  CHECK((root.line == 1 && root.column == 1));
  REQUIRE(root.keys.size() == 3);
  CHECK((root.keys[1].line == 3 && root.keys[1].column == 3));
  const JsonValue& list = *root.find("bb");
  CHECK((list.line == 3 && list.column == 10));
  CHECK((list.items[1].line == 3 && list.items[1].column == 17));
  CHECK(list.items[1].string == "x\"]");
  CHECK((list.items[2].line == 3 && list.items[2].column == 25));
  CHECK(list.items[2].real == -1500);
  const JsonValue& inner = *root.find("c")->find("d");
  CHECK((inner.line == 4 && inner.column == 10));
  CHECK(root.find("missing") == nullptr);
}

TEST_CASE("Whole numbers are exact to 64 bits and beyond that only numbers") {
  CHECK(parse("9223372036854775807").integer == INT64_MAX);
  CHECK(parse("-9223372036854775808").integer == INT64_MIN);
  CHECK(parse("9223372036854775808").kind == JsonValue::Kind::kReal);
  CHECK(parse("1e300").real == 1e300);
}

TEST_CASE("A byte order mark is skipped") {
  const JsonValue root = parse("\xEF\xBB\xBF{\"a\": 1}");
  CHECK(root.find("a")->integer == 1);
}

TEST_CASE("What is not JSON is refused with its place") {
  CHECK(error_of("").find("f.json:1:1: the file is empty") != std::string::npos);
  CHECK(error_of(" \n\t").find("the file is empty") != std::string::npos);
  CHECK(error_of("{\"a\": NaN}").find("f.json:1:7: not valid JSON") != std::string::npos);
  CHECK(error_of("[1,\n Infinity]").find("f.json:2:2: not valid JSON") != std::string::npos);
  CHECK(error_of("{\"a\": 1} x").find("f.json:1:10: not valid JSON") != std::string::npos);
  CHECK(error_of("{\"a\": 1").find("unexpected end of input") != std::string::npos);
  CHECK(error_of("1e400").find("number overflow") != std::string::npos);
  CHECK(error_of("// no\n1").find("not valid JSON") != std::string::npos);
  CHECK(error_of("\"\xff\"").find("UTF-8") != std::string::npos);
  CHECK(error_of(std::string("{}\0{}", 5)).find("f.json:1:3: not valid JSON: a zero byte") !=
        std::string::npos);
}

TEST_CASE("Duplicate keys are refused, in the same object only") {
  CHECK(error_of("{\"a\": 1,\n \"a\": 2}").find("f.json:2:2: duplicate key a") !=
        std::string::npos);
  CHECK(parse("{\"a\": {\"a\": 1}, \"b\": {\"a\": 2}}").keys.size() == 2);
}

TEST_CASE("Depth, count and size are limited") {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  CHECK(parse(nested(kMaxJsonDepth)).kind == JsonValue::Kind::kArray);
  CHECK(error_of(nested(kMaxJsonDepth + 1)).find("f.json:1:65: nested deeper than 64 levels") !=
        std::string::npos);
  CHECK(error_of(std::string(1'000'000, '[')).find("nested deeper") != std::string::npos);
  std::string many = "[0";
  for (std::size_t i = 0; i < kMaxJsonValues; ++i) {
    many += ",0";
  }
  CHECK(error_of(many + "]").find("more than 50000 values") != std::string::npos);
  CHECK(error_of("\"" + std::string(kMaxJsonBytes, 'x') + "\"").find("larger than 8388608 bytes") !=
        std::string::npos);
}

TEST_CASE("Files that are no files are refused") {
  const auto error = [](const char* path) -> std::string {
    try {
      read_text_file(path, "test");
    } catch (const BadInputError& caught) {
      return caught.what();
    }
    return "no error";
  };
  CHECK(error("tests/corpus") == "[test] tests/corpus: is a directory, not a file");
  CHECK(error("no/such/file.json") ==
        "[test] no/such/file.json: cannot be read: No such file or directory");
  CHECK(error("/dev/zero").find("larger than 8388608 bytes") != std::string::npos);
}
