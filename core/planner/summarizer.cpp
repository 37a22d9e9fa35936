#include "core/planner/summarizer.h"

#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/planner/class_emitter.h"
#include "core/planner/step_pieces.h"
#include "core/planner/step_sums.h"

namespace lockstep {
namespace {

/// More than this and everything is forgotten: a bound on memory, about 200 MB.
constexpr std::size_t kMostStages = 50'000;
constexpr std::size_t kMostFragments = 150'000;

}  // namespace

// ---- workshop ----------------------------------------------------------------------------------

class Summarizer::Workshop {
 public:
  const StepOutline& outline(const Scenario& scenario);
  const FragmentStore& store() const { return store_; }

 private:
  void forget_when_full();
  Model& model_of(const Scenario& scenario);
  const Stages& stages_of(Model& model, const Scenario& scenario, const Schedule& schedule);
  const Walks& walks_of(const Scenario& scenario, std::int32_t microbatches);
  void find_pieces(const Scenario& scenario, const StageKind& stage);
  bool has_pieces(const StageKind& stage, std::int64_t microbatches) const;
  void record(const Scenario& scenario, const StageKind& stage);
  void take(const StageKind& stage, const PieceId& id, const Fragment* fragment);
  void keep(const Fragment*& place, bool known, const Fragment* fragment) const;
  void put_together(const StageKind& stage, std::int32_t microbatches);
  void add_segment(
      PassSum& pass, const StageKind& stage, PieceSlot slot, PieceOrder order, bool forward);
  void add_pass(const StageKind& stage, PieceOrder order, bool forward);
  void add_parts(const StageWalk& walk, ClassOutline& each);
  void count_afresh(const Scenario& scenario);

  FragmentStore store_;
  std::vector<std::unique_ptr<Model>> models_;
  std::unordered_map<Key, SegmentPieces, KeyHash> segments_;
  std::unordered_map<Key, StagePieces, KeyHash> stages_;
  std::unordered_map<Key, Walks, KeyHash> walks_;
  std::vector<std::unique_ptr<const Fragment>> afresh_;
  StepOutline outline_;

  // Of the call in progress.
  Model* model_ = nullptr;
  std::int64_t model_number_ = 0;
  SegmentPieces* segment_pieces_ = nullptr;
  StagePieces* stage_pieces_ = nullptr;
  StepSums sums_;
};

void Summarizer::Workshop::forget_when_full() {
  if (stages_.size() > kMostStages || store_.size() > kMostFragments) {
    segments_.clear();
    stages_.clear();
    store_.clear();
  }
}

Model& Summarizer::Workshop::model_of(const Scenario& scenario) {
  const bool dropout = scenario.training.dropout > 0.0;
  const auto matches = [&](const std::unique_ptr<Model>& model) {
    return model->attention == scenario.training.attention && model->dropout == dropout &&
           same_transformer(model->spec, scenario.model);
  };
  const auto found = std::find_if(models_.begin(), models_.end(), matches);
  model_number_ = found - models_.begin();
  if (found != models_.end()) {
    return **found;
  }
  Model& model = *models_.emplace_back(std::make_unique<Model>());
  model.spec = scenario.model;
  model.attention = scenario.training.attention;
  model.dropout = dropout;
  model.graph = build_model_graph(scenario.model, scenario.training);
  return model;
}

const Stages& Summarizer::Workshop::stages_of(Model& model,
                                              const Scenario& scenario,
                                              const Schedule& schedule) {
  const std::int64_t degree = scenario.strategy.pipeline.degree;
  const auto found = model.stages.find(degree);
  if (found != model.stages.end()) {
    return found->second;
  }
  const ModelGraph& graph = *model.graph;
  Stages& stages = model.stages[degree];
  for (std::int32_t rank = 0; rank < degree; ++rank) {
    const StageLayout layout = stage_layout(scenario, graph, schedule, rank);
    StageKind kind;
    kind.embedding = layout.has_embedding;
    kind.head = layout.has_head;
    kind.blocks = static_cast<std::int32_t>(layout.segments.size()) - (kind.embedding ? 1 : 0) -
                  (kind.head ? 1 : 0);
    kind.coordinate = rank;
    const auto same = std::find(stages.kinds.begin(), stages.kinds.end(), kind);
    stages.kind_of_rank.push_back(static_cast<std::int32_t>(same - stages.kinds.begin()));
    if (same == stages.kinds.end()) {
      stages.kinds.push_back(kind);
    }
    StagePlace place;
    place.head_module = graph.segments.back().first_module;
    place.modules_per_block = static_cast<std::int32_t>(graph.templates[1].modules.size());
    if (kind.blocks > 0) {
      const std::int32_t block = layout.segments[kind.embedding ? 1 : 0];
      place.first_block_module = graph.segments[static_cast<std::size_t>(block)].first_module;
    }
    stages.places.push_back(place);
  }
  return stages;
}

const Walks& Summarizer::Workshop::walks_of(const Scenario& scenario, std::int32_t microbatches) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  Key key;
  key.pair(pipeline.degree, microbatches);
  key.bytes(pipeline.degree == 1 ? ScheduleKind::kGPipe : pipeline.schedule);
  const auto found = walks_.find(key);
  if (found != walks_.end()) {
    return found->second;
  }
  Walks walks;
  Scenario other;
  other.strategy.pipeline = pipeline;
  other.training.accumulate = microbatches;
  walks.schedule = pipeline_schedule(other);
  if (pipeline.degree == 1) {
    walks.ranks.push_back(stage_walk(microbatches));
  }
  for (std::int32_t rank = 0; rank < pipeline.degree && pipeline.degree > 1; ++rank) {
    walks.regular = walks.regular && is_regular(walks.schedule, rank);
    walks.ranks.push_back(stage_walk(walks.schedule, rank));
  }
  return walks_.emplace(key, std::move(walks)).first->second;
}

// ---- pieces ------------------------------------------------------------------------------------

bool Summarizer::Workshop::has_pieces(const StageKind& stage, std::int64_t microbatches) const {
  const SegmentPieces& pieces = *segment_pieces_;
  const bool messages = (stage.head || (pieces.known_messages[0] && pieces.known_messages[3])) &&
                        (stage.embedding || (pieces.known_messages[1] && pieces.known_messages[2]));
  const auto has_order = [&](PieceOrder order) {
    const std::size_t at = index(order);
    return stage_pieces_->known_orders[at] && (!stage.embedding || pieces.known[0][at]) &&
           (stage.blocks == 0 || pieces.known[1][at]) && (!stage.head || pieces.known[2][at]) &&
           pieces.known_batch[ends_of(stage)][at];
  };
  return messages && all_orders(microbatches, has_order);
}

void Summarizer::Workshop::find_pieces(const Scenario& scenario, const StageKind& stage) {
  segment_pieces_ = &segments_[segment_key(scenario, stage, model_number_)];
  stage_pieces_ = &stages_[stage_key(scenario, stage, model_number_)];
  if (!has_pieces(stage, scenario.training.accumulate)) {
    record(scenario, stage);
  }
}

/// Lets the planner count this stage, with few micro-batches, and keeps the pieces.
void Summarizer::Workshop::record(const Scenario& scenario, const StageKind& stage) {
  Scenario folded = scenario;
  // Schedules want at least as many micro-batches as pipeline ranks.
  folded.training.accumulate = std::min(
      scenario.training.accumulate,
      std::max<std::int64_t>(few(scenario.training.accumulate), scenario.strategy.pipeline.degree));
  const PlannerContext context = make_context(folded, *model_->graph);
  const Schedule& schedule =
      walks_of(folded, static_cast<std::int32_t>(folded.training.accumulate)).schedule;
  StageLayout layout = stage_layout(folded, *model_->graph, schedule, stage.coordinate);
  const bool only_segments =
      stage_pieces_->known && all_orders(folded.training.accumulate, [&](PieceOrder order) {
        return stage_pieces_->known_orders[index(order)];
      });
  if (only_segments) {
    drop_blocks(layout, stage);
  }
  PlanBuilder tables(context.mesh, model_->graph);
  tables.plan().class_axes = class_axes(folded);
  ClassEmitter emitter(tables, context, layout, schedule, 0, ProgramBuilder::Mode::kCount);
  emitter.record_to([&](const PieceId& id, Fragment&& fragment) {
    if (!only_segments || is_of_segment(id.kind)) {
      take(stage, id, store_.store(std::move(fragment), tables.plan()));
    }
  });
  const CategoryBytes at_start = emitter.count_steady_step().at_start;
  if (!only_segments) {
    stage_pieces_->at_start = at_start;
    stage_pieces_->known = true;
  }
  SegmentPieces& pieces = *segment_pieces_;
  all_orders(folded.training.accumulate, [&](PieceOrder order) {
    const std::size_t at = index(order);
    stage_pieces_->known_orders[at] = true;
    pieces.known[0][at] = pieces.known[0][at] || stage.embedding;
    pieces.known[1][at] = pieces.known[1][at] || stage.blocks > 0;
    pieces.known[2][at] = pieces.known[2][at] || stage.head;
    pieces.known_batch[ends_of(stage)][at] = true;
    return true;
  });
  for (const std::size_t message : {0U, 3U}) {
    pieces.known_messages[message] = pieces.known_messages[message] || !stage.head;
  }
  for (const std::size_t message : {1U, 2U}) {
    pieces.known_messages[message] = pieces.known_messages[message] || !stage.embedding;
  }
}

void Summarizer::Workshop::keep(const Fragment*& place,
                                bool known,
                                const Fragment* fragment) const {
  LOCKSTEP_CHECK(!known || place == fragment, "equal pieces of a step are not alike");
  place = fragment;
}

void Summarizer::Workshop::take(const StageKind& stage,
                                const PieceId& id,
                                const Fragment* fragment) {
  SegmentPieces& segment = *segment_pieces_;
  StagePieces& hooks = *stage_pieces_;
  const std::size_t form = index(form_of(id.slot));
  const std::size_t order = index(id.order);
  switch (id.kind) {
    case PieceKind::kBegin:
      return keep(hooks.begin, hooks.known, fragment);
    case PieceKind::kEnd:
      return keep(hooks.end, hooks.known, fragment);
    case PieceKind::kMicrobatchEnd:
      return keep(hooks.microbatch_end[order], hooks.known_orders[order], fragment);
    case PieceKind::kMicrobatch: {
      const std::size_t ends = ends_of(stage);
      return keep(segment.microbatch[ends][order], segment.known_batch[ends][order], fragment);
    }
    case PieceKind::kForward:
      return keep(segment.forward[form][order], segment.known[form][order], fragment);
    case PieceKind::kBackward:
      return keep(segment.backward[form][order], segment.known[form][order], fragment);
    case PieceKind::kSendForward:
    case PieceKind::kRecvForward:
    case PieceKind::kSendBackward:
    case PieceKind::kRecvBackward: {
      const std::size_t message = message_symbol(id.kind) - message_symbol(PieceKind::kSendForward);
      return keep(segment.messages[message], segment.known_messages[message], fragment);
    }
    case PieceKind::kBeforeForward:
    case PieceKind::kAfterForward:
    case PieceKind::kBeforeBackward:
    case PieceKind::kAfterBackward:
      return keep(hooks.hooks[hook_of(id.kind)][index(id.slot)][order],
                  hooks.known_orders[order],
                  fragment);
  }
}

// ---- putting together --------------------------------------------------------------------------

void Summarizer::Workshop::add_segment(
    PassSum& pass, const StageKind& stage, PieceSlot slot, PieceOrder order, bool forward) {
  const std::size_t form = index(form_of(slot));
  const std::size_t at = index(order);
  PieceGroup group;
  group.add(stage_pieces_->hooks[forward ? 0 : 2][index(slot)][at]);
  group.add(forward ? segment_pieces_->forward[form][at] : segment_pieces_->backward[form][at]);
  group.add(stage_pieces_->hooks[forward ? 1 : 3][index(slot)][at]);
  group.base = slot == PieceSlot::kEmbedding ? PieceBase::kEmbedding
               : slot == PieceSlot::kHead    ? PieceBase::kHead
                                             : PieceBase::kBlock;
  if (slot == PieceSlot::kMiddleBlock) {
    group.times = stage.blocks - 2;
    group.block = forward ? 1 : stage.blocks - 2;
    group.step = forward ? 1 : -1;
  } else if (slot == PieceSlot::kLastBlock) {
    group.block = stage.blocks - 1;
  }
  pass.add(group);
}

void Summarizer::Workshop::add_pass(const StageKind& stage, PieceOrder order, bool forward) {
  PassSum& pass = sums_.passes[forward ? forward_symbol(order) : backward_symbol(order)];
  pass.clear();
  PieceGroup around;
  if (forward) {
    around.add(segment_pieces_->microbatch[ends_of(stage)][index(order)]);
    pass.add(around);
  }
  std::array<PieceSlot, kPieceSlotCount> slots{};
  std::size_t count = 0;
  const auto add = [&](bool present, PieceSlot slot) {
    if (present) {
      slots[count++] = slot;
    }
  };
  add(stage.embedding, PieceSlot::kEmbedding);
  add(stage.blocks > 0, PieceSlot::kFirstBlock);
  add(stage.blocks > 2, PieceSlot::kMiddleBlock);
  add(stage.blocks > 1, PieceSlot::kLastBlock);
  add(stage.head, PieceSlot::kHead);
  for (std::size_t i = 0; i < count; ++i) {
    add_segment(pass, stage, slots[forward ? i : count - 1 - i], order, forward);
  }
  if (!forward) {
    around.add(stage_pieces_->microbatch_end[index(order)]);
    pass.add(around);
  }
}

void Summarizer::Workshop::put_together(const StageKind& stage, std::int32_t microbatches) {
  sums_.at_start = stage_pieces_->at_start;
  sums_.begin = stage_pieces_->begin;
  sums_.end = stage_pieces_->end;
  all_orders(microbatches, [&](PieceOrder order) {
    add_pass(stage, order, true);
    add_pass(stage, order, false);
    return true;
  });
  for (std::size_t message = 0; message < 4; ++message) {
    PassSum& pass = sums_.passes[std::size_t{2} * kPieceOrderCount + message];
    pass.clear();
    PieceGroup group;
    group.add(segment_pieces_->messages[message]);
    pass.add(group);
  }
}

/// What all ranks of the stage's kind share: operations, and bytes at the end.
void Summarizer::Workshop::add_parts(const StageWalk& walk, ClassOutline& each) {
  each.at_start = sums_.at_start;
  each.at_end = sums_.at_start;
  each.first_part = static_cast<std::uint32_t>(outline_.parts.size());
  each.operations = 0;
  const auto add = [&](const Fragment* fragment, std::int64_t times) {
    if (fragment != nullptr) {
      outline_.parts.push_back({fragment, times});
      each.operations += times * fragment->operations;
    }
  };
  const auto hold = [&](const CategoryBytes& delta, std::int64_t times) {
    for (std::size_t c = 0; c < delta.size(); ++c) {
      each.at_end[c] += times * delta[c];
    }
  };
  for (const Fragment* fragment : {sums_.begin, sums_.end}) {
    add(fragment, 1);
    if (fragment != nullptr) {
      hold(fragment->delta, 1);
    }
  }
  for (std::size_t symbol = 0; symbol < walk.totals.size(); ++symbol) {
    if (walk.totals[symbol] == 0) {
      continue;
    }
    const PassSum& pass = sums_.passes[symbol];
    hold(pass.bytes, walk.totals[symbol]);
    for (std::int32_t g = 0; g < pass.count; ++g) {
      const PieceGroup& group = pass.groups[static_cast<std::size_t>(g)];
      for (std::int32_t i = 0; i < group.count; ++i) {
        add(group.fragments[static_cast<std::size_t>(i)], walk.totals[symbol] * group.times);
      }
    }
  }
  each.parts = static_cast<std::uint32_t>(outline_.parts.size()) - each.first_part;
}

const StepOutline& Summarizer::Workshop::outline(const Scenario& scenario) {
  afresh_.clear();
  outline_.classes.clear();
  outline_.parts.clear();
  if (!is_composed(scenario)) {
    count_afresh(scenario);
    return outline_;
  }
  forget_when_full();
  const auto microbatches = static_cast<std::int32_t>(scenario.training.accumulate);
  const Walks& walks = walks_of(scenario, microbatches);
  if (!walks.regular) {
    count_afresh(scenario);
    return outline_;
  }
  model_ = &model_of(scenario);
  const Stages& stages = stages_of(*model_, scenario, walks.schedule);
  outline_.mesh = make_context(scenario, *model_->graph).mesh;
  outline_.class_axes = class_axes(scenario);
  const std::size_t ranks = walks.ranks.size();
  outline_.classes.resize(ranks);
  for (std::size_t kind = 0; kind < stages.kinds.size(); ++kind) {
    const StageKind& stage = stages.kinds[kind];
    find_pieces(scenario, stage);
    put_together(stage, microbatches);
    const auto first = static_cast<std::size_t>(stage.coordinate);
    add_parts(walks.ranks[first], outline_.classes[first]);
    for (std::size_t rank = first; rank < ranks; ++rank) {
      if (static_cast<std::size_t>(stages.kind_of_rank[rank]) == kind) {
        outline_.classes[rank] = outline_.classes[first];
        outline_.classes[rank].peak = highest(sums_, walks.ranks[rank], stages.places[rank]);
      }
    }
  }
  return outline_;
}

void Summarizer::Workshop::count_afresh(const Scenario& scenario) {
  const PlanSummary summary = count_plan(scenario);
  outline_.mesh = summary.mesh;
  outline_.class_axes = summary.class_axes;
  Plan tables;
  tables.shapes = summary.shapes;
  tables.communicators = summary.communicators;
  for (const ProgramSummary& program : summary.classes) {
    auto fragment = std::make_unique<Fragment>();
    for (const OperationCount& count : program.counts) {
      fragment->counts.push_back(store_.translated(count, tables));
    }
    fragment->operations = program.operations;
    const auto part = static_cast<std::uint32_t>(outline_.parts.size());
    outline_.parts.push_back({fragment.get(), 1});
    outline_.classes.push_back(
        {program.at_start, program.at_end, program.operations, program.peak, part, 1});
    afresh_.push_back(std::move(fragment));
  }
}

// ---- Summarizer --------------------------------------------------------------------------------

Summarizer::Summarizer() : workshop_(std::make_unique<Workshop>()) {}
Summarizer::~Summarizer() = default;
Summarizer::Summarizer(Summarizer&&) noexcept = default;
Summarizer& Summarizer::operator=(Summarizer&&) noexcept = default;

const StepOutline& Summarizer::outline(const Scenario& scenario) {
  return workshop_->outline(scenario);
}

const std::vector<Shape>& Summarizer::shapes() const {
  return workshop_->store().shapes();
}

const std::vector<Communicator>& Summarizer::communicators() const {
  return workshop_->store().communicators();
}

PlanSummary Summarizer::summarize(const Scenario& scenario) {
  const StepOutline& step = outline(scenario);
  PlanSummary summary;
  summary.mesh = step.mesh;
  summary.class_axes = step.class_axes;
  summary.tf32 = scenario.training.precision == Precision::kTf32;
  const auto fields = [](const OperationCount& count) {
    return std::tie(count.kind,
                    count.work,
                    count.collective,
                    count.phase,
                    count.stream,
                    count.communicator,
                    count.dtype,
                    count.control,
                    count.shape,
                    count.elements);
  };
  const auto before = [&](const OperationCount& a, const OperationCount& b) {
    return fields(a) < fields(b);
  };
  for (const ClassOutline& each : step.classes) {
    ProgramSummary& program = summary.classes.emplace_back();
    program.operations = each.operations;
    program.at_start = each.at_start;
    program.at_end = each.at_end;
    program.peak = each.peak;
    std::vector<OperationCount>& counts = program.counts;
    for (const FragmentCount& part : step.parts_of(each)) {
      for (OperationCount count : part.fragment->counts) {
        count.count *= part.times;
        counts.push_back(count);
      }
    }
    std::sort(counts.begin(), counts.end(), before);
    std::size_t last = 0;
    for (std::size_t i = 1; i < counts.size(); ++i) {
      if (fields(counts[i]) == fields(counts[last])) {
        counts[last].count += counts[i].count;
      } else {
        counts[++last] = counts[i];
      }
    }
    counts.resize(counts.empty() ? 0 : last + 1);
  }
  summary.shapes = shapes();
  summary.communicators = communicators();
  return summary;
}

}  // namespace lockstep
