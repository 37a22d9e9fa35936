#include "visualizer/models/pipeline_grid_text.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "core/planner/planner.h"
#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

constexpr int kNarrowest = 40;
constexpr char kIdle = '.';

class Picture {
 public:
  Picture(const PipelineGrid& grid, const PipelineTextOptions& options)
      : grid_(grid), options_(options) {
    for (const PipelineRow& row : grid.rows) {
      label_ = std::max(label_, label_of(row).size());
    }
    const std::int64_t room = std::max(options.width, kNarrowest) - static_cast<int>(label_);
    columns_ = std::max<std::int64_t>(room, kNarrowest / 4);
    if (grid.ticks_per_unit > 0 && grid.length() > 0 && grid.length() <= columns_) {
      columns_ = columns_ / grid.length() * grid.length();  // equal cells are equally wide
    }
  }

  std::string draw() const {
    std::string text;
    for (const PipelineRow& row : grid_.rows) {
      text += fmt::format("{:<{}}{}\n", label_of(row), label_, cells_text(row));
      if (options_.live) {
        text += fmt::format("{:<{}}{}\n", "", label_, live_text(row));
      }
    }
    return text;
  }

 private:
  static std::string label_of(const PipelineRow& row) { return fmt::format("rank {}  ", row.rank); }

  std::size_t column_of(std::int64_t time) const {
    return static_cast<std::size_t>((time - grid_.begin) * columns_ / grid_.length());
  }

  std::string cells_text(const PipelineRow& row) const {
    std::string text(static_cast<std::size_t>(columns_), kIdle);
    for (const PipelineCell& cell : row.cells) {
      const std::size_t begin = column_of(cell.begin);
      const std::size_t end = std::max(column_of(cell.end), begin + 1);
      const char letter = letter_of(cell.kind);
      const char shown = cell.chunk % 2 == 0
                             ? letter
                             : static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
      std::string drawn(std::min(end, text.size()) - std::min(begin, text.size()), shown);
      const std::string number = std::to_string(cell.microbatch);
      if (drawn.size() > number.size()) {
        drawn.replace(1, number.size(), number);
      }
      text.replace(std::min(begin, text.size()), drawn.size(), drawn);
    }
    return text;
  }

  /// The most that was in flight in each column: a digit, then letters from 10 on, then '*'.
  std::string live_text(const PipelineRow& row) const {
    std::vector<std::int64_t> most(static_cast<std::size_t>(columns_), 0);
    for (std::size_t i = 0; i < row.live.size(); ++i) {
      const std::int64_t until = i + 1 < row.live.size() ? row.live[i + 1].time : grid_.end;
      const std::size_t begin = column_of(row.live[i].time);
      const std::size_t end = std::max(column_of(until), begin + 1);
      for (std::size_t column = begin; column < std::min(end, most.size()); ++column) {
        most[column] = std::max(most[column], row.live[i].count);
      }
    }
    std::string text;
    for (const std::int64_t count : most) {
      text += count == 0   ? ' '
              : count < 10 ? static_cast<char>('0' + count)
              : count < 36 ? static_cast<char>('a' + (count - 10))
                           : '*';
    }
    return text.erase(text.find_last_not_of(' ') + 1);
  }

  const PipelineGrid& grid_;
  const PipelineTextOptions& options_;
  std::size_t label_ = 0;
  std::int64_t columns_ = 0;
};

std::string length_text(const PipelineGrid& grid, std::int64_t time, bool utf8) {
  return grid.ticks_per_unit == 0
             ? time_text(time, utf8)
             : fmt::format("{:g} units",
                           static_cast<double>(time) / static_cast<double>(grid.ticks_per_unit));
}

std::string percent(double fraction) {
  return fmt::format("{:.1f}", fraction * 100);
}

std::string by_rank(const PipelineGrid& grid, bool utf8) {
  const bool real = grid.ticks_per_unit == 0;
  std::vector<TextColumn> columns = {{"rank", Align::kRight},
                                     {"in cells", Align::kRight},
                                     {"bubble %", Align::kRight},
                                     {"peak live", Align::kRight}};
  if (real) {
    columns.push_back({"stalled", Align::kRight});
    columns.push_back({"peak activations", Align::kRight});
  }
  TextTable table(columns);
  for (const PipelineRow& row : grid.rows) {
    std::vector<std::string> cells = {std::to_string(row.rank),
                                      length_text(grid, row.working, utf8),
                                      percent(grid.bubble(row)),
                                      std::to_string(row.peak_live)};
    if (real) {
      cells.push_back(time_text(row.stalled, utf8));
      cells.push_back(bytes_text(row.peak_activation_bytes));
    }
    table.add(cells);
  }
  return table.text();
}

}  // namespace

std::string pipeline_grid_text(const PipelineGrid& grid,
                               const std::optional<BubbleFormula>& formula,
                               const PipelineTextOptions& options) {
  if (grid.length() <= 0) {
    return "nothing happened: no forward and no backward\n";
  }
  std::string text = Picture(grid, options).draw() + "\n" + by_rank(grid, options.utf8) + "\n";
  text += fmt::format("first to last cell {}, bubble {} %\n",
                      length_text(grid, grid.length(), options.utf8),
                      percent(grid.bubble()));
  if (formula) {
    text += fmt::format("{}, with equal stages and free messages\n", formula->text());
  }
  text += "F forward  B backward  I input gradient  W weight gradient";
  text += grid.chunks > 1 ? "  small letters: odd chunks" : "";
  return text + "  digits: micro-batch, below: activations in flight\n";
}

std::string pipeline_text(const Scenario& scenario,
                          const Plan& plan,
                          const TraceStep& step,
                          const PipelineTextOptions& options) {
  const std::optional<BubbleFormula> formula = bubble_formula(scenario);
  std::string text =
      pipeline_grid_text(pipeline_grid(scenario, plan, step, options.rank), std::nullopt, options);
  const PipelineGrid ideal = pipeline_grid(pipeline_schedule(scenario), UnitCosts{});
  return text + "\nthe same schedule with forward 1, backward 2, messages 0:\n\n" +
         pipeline_grid_text(ideal, formula, options);
}

}  // namespace lockstep::view
