#include "core/planner/schedule/action_csv_cells.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "core/error.h"
#include "core/names.h"

namespace lockstep {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) {
    return {};
  }
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool takes_microbatch(ActionKind kind) {
  return is_compute(kind) || is_communication(kind);
}

std::optional<ActionKind> kind_named(std::string_view name) {
  for (int i = 0; i < kActionKindCount; ++i) {
    const auto kind = static_cast<ActionKind>(i);
    if (name_of(kind) == name) {
      return kind;
    }
  }
  return std::nullopt;
}

std::string upper_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return result;
}

/// One cell at a time; knows where it is for its errors.
class CellParser {
 public:
  CellParser(std::string_view source, std::int32_t row, std::int32_t cell)
      : source_(source), row_(row), cell_(cell) {}

  /// Appends the actions of a cell: none (idle), one, or the two of an OVERLAP_F_B.
  void parse(std::string_view raw, std::vector<PlacedAction>& row) const {
    const std::string_view text = unquoted(trimmed(raw));
    if (text.empty()) {
      return;
    }
    if (text.front() == '(') {
      parse_overlap(text, row);
    } else {
      row.push_back({parse_action(text), row_, cell_});
    }
  }

 private:
  [[noreturn]] void fail(std::string_view reason) const { fail_at(source_, row_, cell_, reason); }

  /// CSV quotes: "2F0" is 2F0 and "" is idle. A quoted comma has been cut already: one side lacks
  /// its quote.
  std::string_view unquoted(std::string_view text) const {
    constexpr char kQuote = '"';
    if (text.find(kQuote) == std::string_view::npos) {
      return text;
    }
    if (text.size() < 2 || text.front() != kQuote || text.back() != kQuote) {
      fail(in_quotes(text) + " has a quotation mark without its partner");
    }
    return trimmed(text.substr(1, text.size() - 2));
  }

  void parse_overlap(std::string_view text, std::vector<PlacedAction>& row) const {
    constexpr std::string_view kEnd = ")OVERLAP_F_B";
    const std::size_t middle = text.find(';');
    if (middle == std::string_view::npos || !text.ends_with(kEnd)) {
      fail(in_quotes(text) + " is not an overlapped pair such as (3F0;2B1)OVERLAP_F_B");
    }
    const std::size_t end = text.size() - kEnd.size();
    if (middle > end) {
      fail(in_quotes(text) + " is not an overlapped pair such as (3F0;2B1)OVERLAP_F_B");
    }
    const Action forward = parse_action(trimmed(text.substr(1, middle - 1)));
    const Action backward = parse_action(trimmed(text.substr(middle + 1, end - middle - 1)));
    if (forward.kind != ActionKind::kForward || backward.kind != ActionKind::kBackward) {
      fail(in_quotes(text) + " overlaps other actions than a forward (F) and a backward (B)");
    }
    row.push_back({forward, row_, cell_});
    row.push_back({backward, row_, cell_});
  }

  Action parse_action(std::string_view text) const {
    std::size_t kind_begin = 0;
    while (kind_begin < text.size() && is_digit(text[kind_begin])) {
      ++kind_begin;
    }
    std::size_t kind_end = text.size();
    while (kind_end > kind_begin && is_digit(text[kind_end - 1])) {
      --kind_end;
    }
    const std::string_view name = text.substr(kind_begin, kind_end - kind_begin);
    const std::optional<ActionKind> kind = kind_named(name);
    if (!kind) {
      fail(unknown_kind_reason(text, name));
    }
    if (kind_begin == 0) {
      fail(in_quotes(text) + " has no stage number before " + std::string(name));
    }
    Action action{*kind, number(text.substr(0, kind_begin), text), kNoMicrobatch};
    const std::string_view microbatch = text.substr(kind_end);
    if (takes_microbatch(*kind) && microbatch.empty()) {
      fail(in_quotes(text) + " has no micro-batch number after " + std::string(name));
    }
    if (!takes_microbatch(*kind) && !microbatch.empty()) {
      fail(in_quotes(text) + " works on the whole stage and takes no micro-batch number");
    }
    if (!microbatch.empty()) {
      action.microbatch = number(microbatch, text);
    }
    return action;
  }

  static std::string unknown_kind_reason(std::string_view text, std::string_view name) {
    constexpr std::string_view kOldFullBackward = "BW";  // PyTorch before 2.6
    std::string reason = in_quotes(text) + " is not an action";
    if (kind_named(upper_case(name))) {
      return reason + ": case counts, write " + in_quotes(upper_case(text));
    }
    if (name == kOldFullBackward) {
      return reason + ": older files write BW for the whole backward, which is now B (and B was I)";
    }
    return reason + ": expected [stage][kind][micro-batch] such as 2F0, with kind one of F B I W " +
           "SEND_F RECV_F SEND_B RECV_B UNSHARD RESHARD REDUCE_GRAD";
  }

  std::int32_t number(std::string_view digits, std::string_view text) const {
    std::int32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail(in_quotes(text) + " has a number that is too large");
    }
    return value;
  }

  std::string_view source_;
  std::int32_t row_;
  std::int32_t cell_;
};

std::vector<PlacedAction> parse_line(std::string_view line,
                                     std::int32_t row_number,
                                     std::string_view source) {
  std::vector<PlacedAction> row;
  std::int32_t cell_number = 0;
  for (bool more = true; more;) {
    const std::size_t comma = line.find(',');
    more = comma != std::string_view::npos;
    CellParser(source, row_number, ++cell_number).parse(line.substr(0, comma), row);
    line.remove_prefix(more ? comma + 1 : line.size());
  }
  return row;
}

}  // namespace

void fail_at(std::string_view source,
             std::int32_t row,
             std::int32_t cell,
             std::string_view reason) {
  throw BadInputError("schedule", fmt::format("{}:{}:{}: {}", source, row, cell, reason));
}

std::vector<std::vector<PlacedAction>> parse_action_rows(std::string_view text,
                                                         std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // spreadsheets write one
  if (text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  const std::size_t last = text.find_last_not_of("\r\n \t");
  text = last == std::string_view::npos ? std::string_view{} : text.substr(0, last + 1);
  std::vector<std::vector<PlacedAction>> rows;
  while (!text.empty()) {
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);  // Python's csv module ends lines with \r\n
    }
    const auto row_number = static_cast<std::int32_t>(rows.size() + 1);
    rows.push_back(parse_line(line, row_number, source));
  }
  return rows;
}

}  // namespace lockstep
