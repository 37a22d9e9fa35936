#include "visualizer/models/memory_stack_text.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

constexpr int kRows = 12;
constexpr std::size_t kNamed = 12;

/// Upwards, by row: half a row or more of a category shows its letter.
std::string stack_column(const CategoryBytes& bytes, std::int64_t most) {
  std::string column(kRows, ' ');
  std::int64_t below = 0;
  std::size_t next = 0;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    below += bytes[i];
    // Rows are rounded where categories meet, so that the picture's height is the total's.
    const auto top = static_cast<std::size_t>(
        std::lround(static_cast<double>(below) / static_cast<double>(most) * kRows));
    for (; next < std::min<std::size_t>(top, kRows); ++next) {
      column[next] = letter_of(static_cast<Category>(i));
    }
  }
  return column;
}

std::string picture(const MemoryStack& stack, const TextOptions& options) {
  const std::int64_t most = std::max<std::int64_t>(1, stack.peak_bytes());
  const std::string title = bytes_text(most);
  const int columns = std::max(options.width, kNarrowestText) - static_cast<int>(title.size()) - 2;
  std::vector<std::string> stacks;
  for (const MemoryColumn& column : stack.columns(stack.whole(), columns)) {
    stacks.push_back(stack_column(column.bytes, most));
  }
  std::string text;
  for (std::size_t row = kRows; row-- > 0;) {
    std::string line = fmt::format("{:>{}} |", row + 1 == kRows ? title : "", title.size());
    for (const std::string& column : stacks) {
      line += column[row];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text + std::string(title.size() + 2, ' ') +
         axis_text(stack.whole(), columns, options.utf8) + "\n";
}

std::string legend(const MemoryStack& stack) {
  std::string text;
  const CategoryBytes& bytes = stack.samples()[stack.peak()].bytes;
  for (const Category category : stack.categories()) {
    // At the peak a category may hold nothing, and yet be in the picture.
    text += fmt::format("{}{} {} {}",
                        text.empty() ? "" : "  ",
                        letter_of(category),
                        name_of(category),
                        bytes_text(bytes[static_cast<std::size_t>(category)]));
  }
  return text + "\n";
}

std::string held_text(const MemoryStack& stack, std::size_t sample, const TextOptions& options) {
  const std::vector<MemoryItem> alive = stack.alive(sample);
  TextTable table({{"bytes", Align::kRight},
                   {"category"},
                   {"since", Align::kRight},
                   {"until", Align::kRight},
                   {"what"}});
  const TimeWindow whole = stack.whole();
  for (std::size_t i = 0; i < std::min(alive.size(), kNamed); ++i) {
    const MemoryItem& it = alive[i];
    table.add({bytes_text(it.bytes),
               std::string(name_of(it.category)),
               it.allocated == kNoSpan ? "before" : time_text(it.since - whole.from, options.utf8),
               it.freed == kNoSpan ? "after" : time_text(it.until - whole.from, options.utf8),
               cut_text(stack.name(it), options.width / 2)});
  }
  std::int64_t rest = 0;
  for (std::size_t i = kNamed; i < alive.size(); ++i) {
    rest += alive[i].bytes;
  }
  std::string text = table.text("  ");
  if (alive.size() > kNamed) {
    text += fmt::format("  and {} smaller ones, {}\n", alive.size() - kNamed, bytes_text(rest));
  }
  return text;
}

}  // namespace

char letter_of(Category category) {
  static constexpr char kLetters[kCategoryCount] = {'P', 'g', 'G', 'O', 'A', 'L', 'C', 'I', 'T'};
  return kLetters[static_cast<std::size_t>(category)];
}

std::string memory_stack_text(const MemoryStack& stack,
                              std::optional<Nanoseconds> at,
                              const TextOptions& options) {
  if (stack.whole().length() <= 0) {
    return "nothing happened: the step is empty\n";
  }
  const std::size_t sample = at ? stack.sample_at(*at) : stack.peak();
  const Nanoseconds time = (at ? *at : stack.samples()[stack.peak()].time) - stack.whole().from;
  const std::int64_t held = total(stack.samples()[sample].bytes);
  std::string text =
      fmt::format("rank {}: peak {} at {}, at {}\n\n",
                  stack.rank(),
                  bytes_text(stack.peak_bytes()),
                  time_text(stack.samples()[stack.peak()].time - stack.whole().from, options.utf8),
                  stack.peak_text());
  text += picture(stack, options) + "at the peak: " + legend(stack);
  text += fmt::format("\nheld at {}: {}\n", time_text(time, options.utf8), bytes_text(held));
  return text + held_text(stack, sample, options);
}

}  // namespace lockstep::view
