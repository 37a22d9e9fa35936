// PipelineEdit: a pipeline schedule under the hand: cells are moved, what cannot be is refused with
// the dependency that it would break, and the time that the order takes is known after every move.
//
//     PipelineEdit edit(make_schedule({ScheduleKind::kGPipe, 4, 1, 8}), {.message = 0});
//     if (const auto refusal = edit.move({2, 8}, {2, 3})) show(*refusal);
//     else draw(edit.grid());
//     simulate(with_schedule(scenario, edit.schedule()));
//
// A schedule is an order, so times always follow from it: there are no holes to leave. The place of
// a cell is schedule().ranks[rank][index], in a grid rows[rank].cells[index]. A plain value: copies
// are what undo keeps.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/planner/schedule/dependency.h"
#include "core/planner/schedule/schedule.h"
#include "core/scenario.h"
#include "visualizer/models/pipeline_grid.h"

namespace lockstep::view {

class PipelineEdit {
 public:
  /// Sends and receives are left out: they follow from the order. UsageError for a schedule that
  /// waits for itself (repaired() helps).
  explicit PipelineEdit(const Schedule& schedule, const UnitCosts& costs = {});

  const Schedule& schedule() const { return schedule_; }
  const UnitCosts& costs() const { return costs_; }
  /// In ticks; kept until the next change.
  const PipelineGrid& grid() const { return grid_; }
  double makespan() const {
    return static_cast<double>(grid_.end) / static_cast<double>(grid_.ticks_per_unit);
  }
  /// UsageError for negative ones.
  void set_costs(const UnitCosts& costs);

  /// Why the cell cannot stand at `to` (an index in the row without the cell); none if it can.
  std::optional<std::string> refusal(const ActionPlace& from, const ActionPlace& to) const;
  /// Moves it, unless refused: then nothing changes and the reason comes back.
  std::optional<std::string> move(const ActionPlace& from, const ActionPlace& to);
  /// Moves it in any case and repairs the order around it. Refused only on another rank.
  std::optional<std::string> move_and_repair(const ActionPlace& from, const ActionPlace& to);

  /// Where `from` would stand if it was dropped on its row at `time` [ticks]: before the first
  /// other cell whose middle is later.
  std::int32_t index_at(const ActionPlace& from, std::int64_t time) const;

  /// PyTorch's action CSV, and back. BadInputError for what is no schedule.
  std::string csv() const;
  static PipelineEdit from_csv(std::string_view text,
                               std::string_view source,
                               const UnitCosts& costs = {});

 private:
  void set(Schedule schedule);
  std::optional<std::string> misplaced(const ActionPlace& from, const ActionPlace& to) const;
  Schedule moved(const ActionPlace& from, const ActionPlace& to) const;

  Schedule schedule_;
  UnitCosts costs_;
  PipelineGrid grid_;
};

/// The same actions in an order that can run: as it is where it can, else what everybody waits for
/// is pulled forward, the nearest first. A schedule that can run comes back unchanged.
Schedule repaired(const Schedule& schedule);

/// The first dependency that the order breaks, in words; none when everything can run.
std::optional<std::string> broken_dependency(const Schedule& schedule);

/// The scenario with this schedule in place of its own: ranks, chunks and micro-batches follow.
/// Whether the model can be cut like that is for validate() to say.
Scenario with_schedule(const Scenario& scenario, const Schedule& schedule);

}  // namespace lockstep::view
