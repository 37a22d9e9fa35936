#include "visualizer/models/pipeline_grid.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/memory_timeline.h"
#include "core/model_graph.h"
#include "core/planner/planner.h"

namespace lockstep::view {
namespace {

/// The live chunks of a row, from its cells in order; ends of cells never fall.
void count_live(PipelineRow& row) {
  std::int64_t live = 0;
  const auto change = [&](std::int64_t time, std::int64_t by) {
    live += by;
    if (!row.live.empty() && row.live.back().time == time) {
      row.live.back().count = live;
    } else {
      row.live.push_back({time, live});
    }
    if (live > row.peak_live) {
      row.peak_live = live;
      row.peak_time = time;
    }
  };
  for (const PipelineCell& cell : row.cells) {
    if (cell.kind == ActionKind::kForward) {
      change(cell.begin, 1);
    } else if (releases_activations(cell.kind)) {
      change(cell.end, -1);
    }
  }
}

void finish(PipelineGrid& grid) {
  bool any = false;
  for (PipelineRow& row : grid.rows) {
    for (const PipelineCell& cell : row.cells) {
      grid.begin = any ? std::min(grid.begin, cell.begin) : cell.begin;
      grid.end = any ? std::max(grid.end, cell.end) : cell.end;
      any = true;
      row.working += cell.end - cell.begin;
      row.stalled += cell.end - cell.begin - cell.busy;
    }
    count_live(row);
  }
}

std::optional<ActionKind> kind_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return ActionKind::kForward;
    case Phase::kRecompute:  // until the backward that it is for says which it is
    case Phase::kBackward:
      return ActionKind::kBackward;
    case Phase::kBackwardInput:
      return ActionKind::kBackwardInput;
    case Phase::kBackwardWeight:
      return ActionKind::kBackwardWeight;
    default:
      return std::nullopt;
  }
}

/// Makes the cells of one rank of consecutive operations of one stage, micro-batch and kind.
class CellMaker {
 public:
  CellMaker(const TraceIndex& index, const Schedule& schedule, const StageLayout& layout)
      : index_(index), stage_of_segment_(index.plan().graph->segments.size(), -1) {
    for (int chunk = 0; chunk < layout.chunks(); ++chunk) {
      for (int at = layout.begin(chunk); at < layout.end(chunk); ++at) {
        stage_of_segment_[static_cast<std::size_t>(layout.segment(at))] =
            schedule.stage_of(layout.coordinate, chunk);
      }
    }
  }

  std::vector<PipelineCell> cells(int track) {
    for (const std::uint32_t number : index_.program(track).operations) {
      const Operation& op = index_.operation({track, number});
      const std::optional<ActionKind> kind = kind_of(op.phase);
      if (op.kind != OperationKind::kCompute || op.stream != Stream::kCompute || !kind ||
          op.microbatch < 0 || op.module == kNoModule ||
          index_.span({track, number}).state == SpanState::kPlanned) {
        continue;
      }
      const std::int32_t segment = index_.plan().graph->segment_of_module[op.module];
      const std::int32_t stage = stage_of_segment_[static_cast<std::size_t>(segment)];
      if (stage >= 0) {
        add(*kind, stage, op, number, index_.times({track, number}));
      }
    }
    return std::move(cells_);
  }

 private:
  void add(ActionKind kind,
           std::int32_t stage,
           const Operation& op,
           std::uint32_t number,
           const SpanTimes& times) {
    const bool recomputes = op.phase == Phase::kRecompute;
    if (!joins(kind, stage, op.microbatch, recomputes)) {
      PipelineCell& cell = cells_.emplace_back();
      cell.kind = kind;
      cell.stage = stage;
      cell.microbatch = op.microbatch;
      cell.begin = times.started;
      cell.first = number;
      kind_is_open_ = recomputes;
    }
    PipelineCell& cell = cells_.back();
    if (!recomputes) {
      cell.kind = kind;
      kind_is_open_ = false;
    }
    cell.end = std::max(cell.end, times.ended);
    cell.busy += times.ended - times.started;
    cell.last = number;
  }

  bool joins(ActionKind kind, std::int32_t stage, std::int32_t microbatch, bool recomputes) const {
    if (cells_.empty() || cells_.back().stage != stage || cells_.back().microbatch != microbatch) {
      return false;
    }
    const bool forward = kind == ActionKind::kForward;
    return cells_.back().kind == kind || ((recomputes || kind_is_open_) && !forward &&
                                          cells_.back().kind != ActionKind::kForward);
  }

  const TraceIndex& index_;
  std::vector<std::int32_t> stage_of_segment_;
  std::vector<PipelineCell> cells_;
  bool kind_is_open_ = false;  ///< only recomputation so far
};

void add_activations(const TraceIndex& index, int track, PipelineRow& row) {
  for (const MemorySample& sample : memory_timeline(index, track)) {
    const std::int64_t bytes = sample.bytes[static_cast<std::size_t>(Category::kActivation)];
    if (row.activations.empty() || row.activations.back().count != bytes) {
      row.activations.push_back({sample.time, bytes});
    }
    row.peak_activation_bytes = std::max(row.peak_activation_bytes, bytes);
  }
}

}  // namespace

char letter_of(ActionKind kind) {
  return name_of(kind).front();
}

double PipelineGrid::bubble(const PipelineRow& row) const {
  return length() == 0 ? 0 : 1 - static_cast<double>(row.working) / static_cast<double>(length());
}

double PipelineGrid::bubble() const {
  double sum = 0;
  for (const PipelineRow& row : rows) {
    sum += bubble(row);
  }
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

PipelineGrid pipeline_grid(const Scenario& scenario,
                           const Plan& plan,
                           const TraceStep& step,
                           int rank) {
  const TraceIndex index(plan, step);
  const Schedule schedule = pipeline_schedule(scenario);
  PipelineGrid grid;
  grid.chunks = schedule.chunks;
  grid.microbatches = schedule.microbatches;
  for (int coordinate = 0; coordinate < plan.mesh.size(Axis::kPipeline); ++coordinate) {
    PipelineRow& row = grid.rows.emplace_back();
    row.coordinate = coordinate;
    row.rank = plan.mesh.with(rank, Axis::kPipeline, coordinate);
    const std::int32_t track = step.track_of_rank[static_cast<std::size_t>(row.rank)];
    const StageLayout layout = stage_layout(scenario, *plan.graph, schedule, coordinate);
    row.cells = CellMaker(index, schedule, layout).cells(track);
    for (PipelineCell& cell : row.cells) {
      cell.chunk = schedule.chunk_of_stage(cell.stage);
    }
    add_activations(index, track, row);
  }
  finish(grid);
  return grid;
}

PipelineGrid pipeline_grid(const Schedule& schedule, const UnitCosts& costs) {
  const UnitTime time = time_schedule(schedule, costs);
  PipelineGrid grid;
  grid.chunks = schedule.chunks;
  grid.microbatches = schedule.microbatches;
  grid.ticks_per_unit = time.ticks_per_unit;
  for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    PipelineRow& row = grid.rows.emplace_back();
    row.coordinate = row.rank = static_cast<std::int32_t>(rank);
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      const Action& action = schedule.ranks[rank][i];
      const ActionTime& at = time.times[rank][i];
      if (is_compute(action.kind)) {
        row.cells.push_back({action.kind,
                             action.stage,
                             schedule.chunk_of_stage(action.stage),
                             action.microbatch,
                             at.start,
                             at.end,
                             at.end - at.start,
                             kNoSpan,
                             kNoSpan});
      }
    }
  }
  finish(grid);
  return grid;
}

// ---- the textbook ------------------------------------------------------------------------------

std::string BubbleFormula::text() const {
  return fmt::format("{}: {} = {} = {:.1f} %", schedule, symbols, values, fraction * 100);
}

/// Step and bubble in units of a chunk's forward, with a backward of twice that: M (F + B) of work
/// and (P - 1)(F + B) / V of filling and draining; where weight gradients fill the bubble, only
/// (P - 1) F / V of it stays (arXiv:2104.04473 section 2.2, arXiv:2401.10241 section 2).
std::optional<BubbleFormula> bubble_formula(const ScheduleRequest& request) {
  if (!problems(request).empty() || request.microbatches < request.pipeline_degree) {
    return std::nullopt;
  }
  const int p = request.pipeline_degree;
  const int v = request.chunks;
  const int m = request.microbatches;
  const auto formula = [&](std::string symbols, std::string filled, std::int64_t work) {
    return BubbleFormula{std::string(name_of(request.kind)),
                         std::move(symbols),
                         fmt::format("{} / ({} + {})", p - 1, filled, p - 1),
                         static_cast<double>(p - 1) / static_cast<double>(work + p - 1)};
  };
  switch (request.kind) {
    case ScheduleKind::kGPipe:
    case ScheduleKind::k1F1B:
      return formula("(P-1) / (M + P-1)", fmt::format("{}", m), m);
    case ScheduleKind::kInterleaved:
    case ScheduleKind::kLoopedBfs:
      return formula("(P-1) / (V M + P-1)", fmt::format("{} x {}", v, m), std::int64_t{v} * m);
    case ScheduleKind::kZbV:
      if (m < 2 * p - 1) {
        return std::nullopt;
      }
      [[fallthrough]];
    case ScheduleKind::kZbH1:
    case ScheduleKind::kInterleavedZb:
      return formula(
          "(P-1) / (3 V M + P-1)", fmt::format("3 x {} x {}", v, m), 3 * std::int64_t{v} * m);
  }
  return std::nullopt;
}

std::optional<BubbleFormula> bubble_formula(const Scenario& scenario) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  if (pipeline.degree < 2 || !pipeline.actions_csv.empty()) {
    return std::nullopt;
  }
  return bubble_formula({pipeline.schedule,
                         static_cast<std::int32_t>(pipeline.degree),
                         static_cast<std::int32_t>(pipeline.chunks),
                         static_cast<std::int32_t>(scenario.training.accumulate)});
}

}  // namespace lockstep::view
