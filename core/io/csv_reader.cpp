#include "core/io/csv_reader.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/json_reader.h"
#include "core/names.h"

namespace lockstep {
namespace {

/// One record after the other. A field ends at a comma, a record at LF or CRLF.
class Records {
 public:
  Records(std::string_view text, const CsvTable& table) : text_(text), table_(table) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
      at_ = kByteOrderMark.size();
    }
  }

  bool done() const { return at_ >= text_.size(); }

  CsvRow next() {
    CsvRow row;
    row.line = line_;
    row.fields.push_back(field());
    while (!done() && text_[at_] == ',') {
      ++at_;
      row.fields.push_back(field());
    }
    end_record();
    return row;
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    table_.refuse(CsvRow{line_, {}}, message);
  }

  std::string field() {
    if (!done() && text_[at_] == '"') {
      return quoted();
    }
    const std::size_t begin = at_;
    while (!done() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r') {
      if (text_[at_] == '"') {
        fail("a quote inside a field that does not begin with one");
      }
      ++at_;
    }
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string quoted() {
    std::string value;
    const std::int32_t begin = line_;
    ++at_;
    while (!done()) {
      const char c = text_[at_++];
      if (c != '"') {
        line_ += c == '\n' ? 1 : 0;
        value += c;
      } else if (!done() && text_[at_] == '"') {
        value += text_[at_++];
      } else {
        return value;
      }
    }
    line_ = begin;
    fail("the quote that begins here has no end");
  }

  void end_record() {
    if (done()) {
      return;
    }
    if (text_[at_] == '\r') {
      ++at_;
    }
    if (done() || text_[at_] != '\n') {
      fail("characters after the end of a quoted field or a lone carriage return");
    }
    ++at_;
    ++line_;
  }

  std::string_view text_;
  const CsvTable& table_;
  std::size_t at_ = 0;
  std::int32_t line_ = 1;
};

template <typename Number>
std::optional<Number> parsed(const CsvTable& table,
                             const CsvRow& row,
                             std::size_t column,
                             const char* what) {
  const std::string& field = table.text(row, column);
  if (field.empty()) {
    return std::nullopt;
  }
  Number value{};
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc{} || stop != end || !std::isfinite(static_cast<double>(value))) {
    table.refuse(row, fmt::format("{} is not {}: \"{}\"", table.header[column], what, field));
  }
  return value;
}

}  // namespace

std::size_t CsvTable::column(std::string_view name) const {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) {
      return i;
    }
  }
  refuse(CsvRow{1, {}}, fmt::format("no column \"{}\"", name));
}

const std::string& CsvTable::text(const CsvRow& row, std::size_t column) const {
  return row.fields.at(column);
}

std::optional<double> CsvTable::number(const CsvRow& row, std::size_t column) const {
  return parsed<double>(*this, row, column, "a number");
}

std::optional<std::int64_t> CsvTable::integer(const CsvRow& row, std::size_t column) const {
  return parsed<std::int64_t>(*this, row, column, "a whole number");
}

void CsvTable::refuse(const CsvRow& row, std::string_view message) const {
  throw BadInputError(component, fmt::format("{}:{}: {}", source, row.line, message));
}

CsvTable parse_csv(std::string_view text, std::string_view source, std::string_view component) {
  CsvTable table;
  table.source = std::string(source);
  table.component = std::string(component);
  Records records(text, table);
  if (records.done()) {
    table.refuse(CsvRow{1, {}}, "no header");
  }
  table.header = records.next().fields;
  while (!records.done()) {
    CsvRow row = records.next();
    if (row.fields.size() != table.header.size()) {
      table.refuse(
          row,
          fmt::format("{} fields where the header has {}", row.fields.size(), table.header.size()));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

CsvTable load_csv(const std::string& path, std::string_view component) {
  return parse_csv(read_text_file(path, component), path, component);
}

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) {
    return std::string(value);
  }
  std::string text = "\"";
  for (const char c : value) {
    text += c;
    if (c == '"') {
      text += c;
    }
  }
  return text + '"';
}

}  // namespace lockstep
