#include "core/planner/step_recorder.h"

#include <algorithm>

#include "core/check.h"
#include "core/planner/class_emitter.h"

namespace lockstep {
namespace {

/// Micro-batches whose passes come in all orders: the first, one between, the last.
constexpr std::int64_t kFewMicrobatches = 3;

/// Takes each piece once, the first time that it comes.
class PieceRecorder final : public FragmentSink {
 public:
  PieceRecorder(const Recording& recording, const StageLayout& layout)
      : recording_(recording), layout_(layout), stage_is_known_(recording.stage.begin.known) {}

  bool wants(const PieceId& id) override {
    if (id.kind == PieceKind::kInterjection) {
      return !stage_is_known_;
    }
    if (id.kind == PieceKind::kForward || id.kind == PieceKind::kBackward) {
      return !std::exchange(parts(id).known, true);
    }
    return !std::exchange(piece(id).known, true);
  }

  void take(const PieceId& id, Fragment&& counted) override {
    const Fragment* fragment = recording_.store.store(std::move(counted));
    if (id.kind == PieceKind::kInterjection) {
      auto& interjections = recording_.stage.interjections;
      interjections.resize(layout_.segments.size());
      interjections[static_cast<std::size_t>(id.position)][index(id.order)].push_back(fragment);
    } else if (id.kind == PieceKind::kForward || id.kind == PieceKind::kBackward) {
      parts(id).fragments.push_back(fragment);
    } else {
      piece(id).fragment = fragment;
      if (is_hook(id.kind) && fragment != nullptr) {
        recording_.stage.chunks[static_cast<std::size_t>(id.chunk)]
            .any[index(pass_of(id))][is_before(id.kind) ? 0 : 1] = true;
      }
    }
  }

 private:
  static bool is_before(PieceKind kind) {
    return kind == PieceKind::kBeforeForward || kind == PieceKind::kBeforeBackward;
  }
  static bool is_hook(PieceKind kind) {
    return is_before(kind) || kind == PieceKind::kAfterForward || kind == PieceKind::kAfterBackward;
  }
  static PassKind pass_of(const PieceId& id) {
    const bool forward = id.kind == PieceKind::kForward || id.kind == PieceKind::kBeforeForward ||
                         id.kind == PieceKind::kAfterForward;
    return forward ? PassKind::kForward : id.weights ? PassKind::kWeight : PassKind::kBackward;
  }
  PieceParts& parts(const PieceId& id) const {
    const PassKind pass = pass_of(id);
    const SegmentForm form = form_of(id.slot);
    return recording_.segment
        .passes[index(pass)][index(form)][recording_.segment.kept_order(pass, form, id.order)];
  }
  Piece& piece(const PieceId& id) const {
    SegmentPieces& segment = recording_.segment;
    StagePieces& stage = recording_.stage;
    switch (id.kind) {
      case PieceKind::kBegin:
        return stage.begin;
      case PieceKind::kEnd:
        return stage.end;
      case PieceKind::kMicrobatchEnd:
        return stage.microbatch_end[index(id.order)];
      case PieceKind::kMicrobatch:
        return segment.microbatch[batch_of(id)][index(id.order)];
      case PieceKind::kSendForward:
      case PieceKind::kRecvForward:
      case PieceKind::kSendBackward:
      case PieceKind::kRecvBackward:
        return segment.messages[static_cast<std::size_t>(id.kind) -
                                static_cast<std::size_t>(PieceKind::kSendForward)];
      case PieceKind::kBeforeForward:
      case PieceKind::kBeforeBackward:
        return hook(id, 0);
      default:
        return hook(id, 1);
    }
  }
  Piece& hook(const PieceId& id, std::size_t after) const {
    return recording_.stage.chunks[static_cast<std::size_t>(id.chunk)]
        .hooks[index(pass_of(id))][after][index(id.slot)][index(id.order)];
  }
  std::size_t batch_of(const PieceId& id) const {
    const auto last = static_cast<std::int32_t>(recording_.graph->segments.size()) - 1;
    ChunkForm form;
    form.embedding = layout_.segment(layout_.begin(id.chunk)) == 0;
    form.head = layout_.segment(layout_.end(id.chunk) - 1) == last;
    return batch_index(form, static_cast<std::size_t>(id.chunk));
  }

  const Recording& recording_;
  const StageLayout& layout_;
  bool stage_is_known_;
};

/// Each micro-batch through all chunks of one rank and back. Pieces do not depend on how passes of
/// different micro-batches interleave, so that the real schedule need not run.
Schedule one_by_one(const Recording& recording, std::int32_t microbatches) {
  Schedule schedule = recording.walks.schedule;
  schedule.microbatches = microbatches;
  schedule.ranks.resize(static_cast<std::size_t>(schedule.pipeline_degree));
  std::vector<Action>& actions = schedule.ranks[static_cast<std::size_t>(recording.coordinate)];
  const auto stage_of = [&](std::int32_t chunk) {
    return schedule.stage_of(recording.coordinate, chunk);
  };
  for (std::int32_t microbatch = 0; microbatch < microbatches; ++microbatch) {
    const auto add = [&](bool present, ActionKind kind, std::int32_t stage) {
      if (present) {
        actions.push_back({kind, stage, microbatch});
      }
    };
    const auto crosses_before = [&](std::int32_t stage) {
      return stage > 0 && schedule.crosses_ranks_after(stage - 1);
    };
    for (std::int32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
      const std::int32_t stage = stage_of(chunk);
      add(crosses_before(stage), ActionKind::kRecvForward, stage);
      add(true, ActionKind::kForward, stage);
      add(schedule.crosses_ranks_after(stage), ActionKind::kSendForward, stage);
    }
    for (std::int32_t chunk = schedule.chunks - 1; chunk >= 0; --chunk) {
      const std::int32_t stage = stage_of(chunk);
      const bool splits = recording.walks.splits;
      add(schedule.crosses_ranks_after(stage), ActionKind::kRecvBackward, stage);
      add(true, splits ? ActionKind::kBackwardInput : ActionKind::kBackward, stage);
      add(crosses_before(stage), ActionKind::kSendBackward, stage);
      add(splits, ActionKind::kBackwardWeight, stage);
    }
  }
  return schedule;
}

/// Leaves one block per chunk, enough for the pieces of segments; where those of blocks are known,
/// only to chunks that would be empty.
void drop_blocks(StageLayout& layout, const ModelGraph& graph, bool blocks_are_known) {
  std::vector<std::int32_t> segments;
  std::vector<std::int32_t> begins{0};
  const auto is_block = [&](std::int32_t segment) {
    return graph.segments[static_cast<std::size_t>(segment)].layer >= 0;
  };
  for (int chunk = 0; chunk < layout.chunks(); ++chunk) {
    const auto first = layout.segments.begin() + layout.begin(chunk);
    const auto last = layout.segments.begin() + layout.end(chunk);
    bool keeps = !blocks_are_known || std::all_of(first, last, is_block);
    for (auto segment = first; segment != last; ++segment) {
      if (!is_block(*segment) || std::exchange(keeps, false)) {
        segments.push_back(*segment);
      }
    }
    begins.push_back(static_cast<std::int32_t>(segments.size()));
  }
  layout.segments = std::move(segments);
  layout.chunk_begin = std::move(begins);
}

void find_alike(StagePieces& stage) {
  const auto& all = stage.interjections;
  for (std::size_t i = 0; i < all.size(); ++i) {
    stage.first_alike.push_back(
        static_cast<std::size_t>(std::find(all.begin(), all.end(), all[i]) - all.begin()));
  }
}

}  // namespace

void record_pieces(const Recording& recording) {
  Scenario folded = recording.scenario;
  folded.training.recompute = recording.recompute;
  folded.training.recompute_every = 1;
  folded.training.accumulate = reduces_every_pass(folded)       ? 2
                               : folded.training.accumulate > 1 ? kFewMicrobatches
                                                                : 1;
  const PlannerContext context = make_context(folded, *recording.graph);
  const Schedule schedule = one_by_one(recording, context.microbatches);
  StageLayout layout = stage_layout(folded, *recording.graph, schedule, recording.coordinate);
  const bool only_segments = recording.stage.begin.known;
  if (only_segments) {
    drop_blocks(layout, *recording.graph, recording.blocks_are_known);
  } else {
    recording.stage.chunks.resize(static_cast<std::size_t>(layout.chunks()));
  }
  Plan& plan = recording.tables.plan();
  plan.mesh = context.mesh;
  plan.graph = recording.graph;
  plan.class_axes = class_axes(folded);
  PieceRecorder recorder(recording, layout);
  ClassEmitter emitter(
      recording.tables, context, layout, schedule, 0, ProgramBuilder::Mode::kCount);
  emitter.record_to(&recorder);
  if (only_segments) {
    emitter.count_passes();
  } else {
    recording.stage.at_start = emitter.count_steady_step().at_start;
    find_alike(recording.stage);
  }
}

}  // namespace lockstep
