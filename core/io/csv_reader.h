// Reads comma-separated values as RFC 4180 defines them, strictly: one header, records of equal
// width, quotes only around whole fields. Every refusal is a BadInputError of one line that begins
// with the place, "file:line: ".
//
//     const CsvTable table = load_csv("data/validation/collectives.csv", "validate");
//     const std::size_t size = table.column("size_bytes");
//     for (const CsvRow& row : table.rows) {
//       const std::optional<double> bytes = table.number(row, size);  // nullopt: the field is
//       empty
//     }
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

struct CsvRow {
  std::int32_t line = 0;  ///< where the record begins, from 1
  std::vector<std::string> fields;
};

struct CsvTable {
  std::string source;     ///< file name, for messages
  std::string component;  ///< the part that reads it, for messages
  std::vector<std::string> header;
  std::vector<CsvRow> rows;

  /// Index of the column; BadInputError when the header has none of this name.
  std::size_t column(std::string_view name) const;
  const std::string& text(const CsvRow& row, std::size_t column) const;
  /// nullopt for an empty field, BadInputError for anything that is not a finite number.
  std::optional<double> number(const CsvRow& row, std::size_t column) const;
  std::optional<std::int64_t> integer(const CsvRow& row, std::size_t column) const;
  /// Throws a BadInputError that begins with the place of the row.
  [[noreturn]] void refuse(const CsvRow& row, std::string_view message) const;
};

/// Parses `text`; `source` (a file name) and `component` are for the error's text.
CsvTable parse_csv(std::string_view text, std::string_view source, std::string_view component);

/// The whole file, at most kMaxJsonBytes (core/io/json_reader.h).
CsvTable load_csv(const std::string& path, std::string_view component);

/// One field as it stands in a file: in quotes where it needs them.
std::string csv_field(std::string_view value);

}  // namespace lockstep
