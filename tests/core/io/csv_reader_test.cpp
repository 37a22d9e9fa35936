#include "core/io/csv_reader.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

CsvTable parse(std::string_view text) {
  return parse_csv(text, "f.csv", "test");
}

template <typename Action>
std::string error_when(Action action) {
  try {
    action();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return error.what();
  }
  return "no error";
}

std::string error_of(std::string_view text) {
  return error_when([&] { parse(text); });
}

}  // namespace

TEST_CASE("Fields in quotes hold commas, quotes and line ends, and rows know their line") {
  const CsvTable table = parse("a,b\r\n\"x, \"\"y\"\"\",\"two\nlines\"\n,2\n\"\",3");
  REQUIRE(table.rows.size() == 3);
  CHECK(table.rows[0].fields == std::vector<std::string>{"x, \"y\"", "two\nlines"});
  CHECK(table.rows[0].line == 2);
  CHECK(table.rows[1].line == 4);
  CHECK(table.rows[2].line == 5);
  CHECK(table.text(table.rows[1], table.column("a")).empty());
}

TEST_CASE("Numbers of a CSV file are whole fields; an empty field is no number") {
  const CsvTable table = parse("n,x\n12,-1.5e3\n,\n1.5,abc\n9223372036854775808,inf\n");
  const std::size_t n = table.column("n");
  const std::size_t x = table.column("x");
  CHECK(table.integer(table.rows[0], n) == 12);
  CHECK(table.number(table.rows[0], x) == -1500.0);
  CHECK_FALSE(table.integer(table.rows[1], n).has_value());
  CHECK_FALSE(table.number(table.rows[1], x).has_value());
  CHECK(error_when([&] { table.integer(table.rows[2], n); }) ==
        "[test] f.csv:4: n is not a whole number: \"1.5\"");
  CHECK(error_when([&] { table.number(table.rows[2], x); }) ==
        "[test] f.csv:4: x is not a number: \"abc\"");
  CHECK(error_when([&] { table.integer(table.rows[3], n); }) ==
        "[test] f.csv:5: n is not a whole number: \"9223372036854775808\"");
  CHECK(error_when([&] { table.number(table.rows[3], x); }) ==
        "[test] f.csv:5: x is not a number: \"inf\"");
}

TEST_CASE("A CSV file that breaks the format is refused with its line") {
  CHECK(error_of("") == "[test] f.csv:1: no header");
  CHECK(error_of("a,b\n1,2\n1\n") == "[test] f.csv:3: 1 fields where the header has 2");
  CHECK(error_of("a,b\n1,\"2\n3\n") == "[test] f.csv:2: the quote that begins here has no end");
  CHECK(error_of("a\nx\"y\n") ==
        "[test] f.csv:2: a quote inside a field that does not begin with one");
  CHECK(error_of("a\n\"x\"y\n") ==
        "[test] f.csv:2: characters after the end of a quoted field or a lone carriage return");
  CHECK(error_when([] { parse("a,b\n").column("c"); }) == "[test] f.csv:1: no column \"c\"");
}

TEST_CASE("A field that was written is read back") {
  for (const char* value : {"", "plain", "a,b", "say \"so\"", "two\nlines"}) {
    const CsvTable table = parse("h,i\n" + csv_field(value) + ",1\n");
    CHECK(table.rows[0].fields[0] == value);
  }
}
