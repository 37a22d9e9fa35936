#include "core/report_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace lockstep {

std::string bytes_text(std::int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes > -1024 && bytes < 1024) {
    return fmt::format("{} B", bytes);
  }
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.995 would be printed as 1024.00.
  while (std::fabs(value) >= 1023.995 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string grouped(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, ",");
  }
  return digits;
}

std::string si_text(double value) {
  static constexpr const char* kPrefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  std::size_t prefix = 0;
  while (std::fabs(value) >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  return fmt::format("{:.3g}{}", value, kPrefixes[prefix]);
}

std::size_t text_width(std::string_view text) {
  // Bytes 10xxxxxx continue a character.
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) >> 6U) != 2; }));
}

std::string TextTable::text(std::string_view indent) const {
  std::vector<std::size_t> widths;
  for (const TextColumn& column : columns_) {
    widths.push_back(text_width(column.title));
  }
  for (const std::vector<std::string>& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text_width(row[i]));
    }
  }
  std::string result;
  const auto add_line = [&](auto&& cell) {
    std::string line(indent);
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& text = cell(i);
      const std::string blanks(widths[i] - text_width(text), ' ');
      line += i == 0 ? "" : "  ";
      line += columns_[i].align == Align::kRight ? blanks + text : text + blanks;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    result += line + "\n";
  };
  add_line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  const std::string empty;
  for (const std::vector<std::string>& row : rows_) {
    add_line([&](std::size_t i) -> const std::string& { return i < row.size() ? row[i] : empty; });
  }
  return result;
}

}  // namespace lockstep
