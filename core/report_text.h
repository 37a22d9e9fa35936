// Report text: how numbers and tables look wherever Lockstep prints them.
//
//     bytes_text(4'294'967'296);     // "4.00 GiB"; 1024-based units always carry their i
//     grouped(8'030'261'248);        // "8,030,261,248"
//     TextTable table({{"rank", Align::kRight}, {"operation"}});
//     table.add({"3", "forward"});
//     table.text();                  // columns as wide as their widest cell
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// Two decimals in the largest unit of which there is at least one: "0 B", "96 B", "1.50 KiB".
std::string bytes_text(std::int64_t bytes);

/// Digits in groups of three.
std::string grouped(std::int64_t number);

/// At most three significant digits with an SI prefix: "989 T", "3.35 T", "0".
std::string si_text(double value);

/// Characters of UTF-8 text; each counts one column.
std::size_t text_width(std::string_view text);

enum class Align : std::uint8_t { kLeft, kRight };

struct TextColumn {
  std::string title;
  Align align = Align::kLeft;
};

class TextTable {
 public:
  explicit TextTable(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// Title row, then the rows; columns two spaces apart, no blanks at line ends.
  std::string text(std::string_view indent = "") const;

 private:
  std::vector<TextColumn> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace lockstep
