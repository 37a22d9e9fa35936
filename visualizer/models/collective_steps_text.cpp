#include "visualizer/models/collective_steps_text.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

std::string plural(std::size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string title(const CollectiveSteps& steps, bool utf8) {
  const CollectiveRecord& head = steps.head();
  return fmt::format("{} of {} {}, {}, {}, {}: {}, {}\n",
                     name_of(head.collective),
                     bytes_text(head.message_bytes),
                     name_of(head.dtype),
                     head.algorithm,
                     plural(static_cast<std::size_t>(head.ranks), "rank"),
                     plural(steps.chunks().size(), "chunk"),
                     plural(steps.steps().size(), "step"),
                     time_text(head.time, utf8));
}

/// What all ranks hold, with marks on what `step` brought; null for the beginning.
std::string picture(const CollectiveSteps& steps,
                    const Holdings& now,
                    const CollectiveStep* step,
                    const std::string& name,
                    int columns) {
  std::vector<TextColumn> titles = {{name}};
  for (int chunk = 0; chunk < columns; ++chunk) {
    titles.push_back({chunk == 0 ? "chunk 0" : std::to_string(chunk), Align::kRight});
  }
  TextTable table(titles);
  for (int rank = 0; rank < steps.ranks(); ++rank) {
    std::vector<std::string> cells = {fmt::format("rank {}", rank)};
    for (int chunk = 0; chunk < columns; ++chunk) {
      cells.push_back(rank_set_text(now.at(rank, chunk), steps.ranks()));
    }
    if (step != nullptr) {
      for (const StepMove& move : step->moves) {
        if (move.dst == rank && move.chunk >= 0 && move.chunk < columns) {
          std::string& cell = cells[static_cast<std::size_t>(move.chunk) + 1];
          cell = (move.reduces ? "+" : "=") + rank_set_text(move.after, steps.ranks());
        }
      }
    }
    table.add(cells);
  }
  return table.text();
}

std::string moves_text(const CollectiveStep& step) {
  std::int64_t bytes = 0;
  for (const StepMove& move : step.moves) {
    bytes += move.bytes;
  }
  return fmt::format("{}, {}", plural(step.moves.size(), "move"), bytes_text(bytes));
}

std::string totals(const CollectiveSteps& steps) {
  TextTable table({{"rank", Align::kRight}, {"sent", Align::kRight}, {"received", Align::kRight}});
  for (int rank = 0; rank < steps.ranks(); ++rank) {
    table.add({std::to_string(rank),
               bytes_text(steps.sent_bytes(rank)),
               bytes_text(steps.received_bytes(rank))});
  }
  return table.text();
}

std::string verdict(const CollectiveSteps& steps) {
  if (steps.problems().empty()) {
    return "every rank ends with all that the collective owes it\n";
  }
  std::string text;
  for (const std::string& problem : steps.problems()) {
    text += "wrong: " + problem + "\n";
  }
  return text;
}

}  // namespace

std::string collective_steps_text(const CollectiveSteps& steps,
                                  const CollectiveTextOptions& options) {
  const auto chunks = static_cast<int>(steps.chunks().size());
  const int columns = std::min(chunks, std::max(1, options.most_chunks));
  const auto count = static_cast<int>(steps.steps().size());
  const int shown = std::min(count, std::max(0, options.most_steps));
  std::string text = title(steps, options.utf8) + "\n";
  Holdings now = steps.begin();
  text += picture(steps, now, nullptr, "before", columns) + "\n";
  for (int i = 0; i < shown; ++i) {
    const CollectiveStep& step = steps.steps()[static_cast<std::size_t>(i)];
    steps.advance(now);
    text += picture(steps, now, &step, fmt::format("step {}", i), columns);
    text += moves_text(step) + "\n\n";
  }
  if (columns < chunks) {
    text += fmt::format("{} more chunks are not drawn\n", chunks - columns);
  }
  if (shown < count) {
    text += fmt::format("{} more steps are not drawn\n", count - shown);
  }
  return text + totals(steps) + "\n" + verdict(steps) +
         "cells: whose values are summed; + added in this step, = passed on, . nothing\n";
}

}  // namespace lockstep::view
