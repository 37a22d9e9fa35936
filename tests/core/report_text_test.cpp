#include "core/report_text.h"

#include "tests/support/catch.h"

using namespace lockstep;

TEST_CASE("Bytes are shown in the largest unit that has one, always with its i") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.00 KiB");
  CHECK(bytes_text(1536) == "1.50 KiB");
  CHECK(bytes_text((std::int64_t{1} << 20) - 1) == "1.00 MiB");  // not 1024.00 KiB
  CHECK(bytes_text(std::int64_t{80} << 30) == "80.00 GiB");
  CHECK(bytes_text(-(std::int64_t{3} << 40)) == "-3.00 TiB");
  CHECK(bytes_text(INT64_MAX) == "8.00 EiB");
}

TEST_CASE("Numbers are grouped by thousands and have SI prefixes") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1,000");
  CHECK(grouped(-123456) == "-123,456");
  CHECK(grouped(8030261248) == "8,030,261,248");
  CHECK(si_text(0) == "0");
  CHECK(si_text(989.4e12) == "989 T");
  CHECK(si_text(999.6e9) == "1 T");
  CHECK(si_text(3.35e12) == "3.35 T");
}

TEST_CASE("Columns are as wide as their widest cell, and no line ends with blanks") {
  TextTable table({{"name"}, {"bytes", Align::kRight}, {"note"}});
  table.add({"a", "1", ""});
  table.add(
      {"gr\xc3\xb6\xc3\x9f"
       "er",
       "12345",
       "x"});
  CHECK(table.text() ==
        "name    bytes  note\n"
        "a           1\n"
        "gr\xc3\xb6\xc3\x9f"
        "er  12345  x\n");
  CHECK(text_width("gr\xc3\xb6\xc3\x9f"
                   "er") == 6);
}
