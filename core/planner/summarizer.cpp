#include "core/planner/summarizer.h"

#include <algorithm>
#include <tuple>

#include "core/planner/context.h"
#include "core/planner/step_assembly.h"
#include "core/planner/step_recorder.h"

namespace lockstep {
namespace {

/// More than this and everything is forgotten: a bound on memory, about 200 MB.
constexpr std::size_t kMostStages = 20'000;
constexpr std::size_t kMostFragments = 150'000;
constexpr std::size_t kMostWalks = 2'000;
/// Steps put together that are kept: some more than the batches that a search tries per layout, few
/// enough to stay in the processor's cache.
constexpr std::size_t kSteps = 512;

/// Operations that agree in all fields, counted together and in order.
/// What counts are sorted by: the small fields side by side in one number, then the large ones.
std::tuple<std::uint64_t, std::uint32_t, std::int64_t> sort_key(const OperationCount& count) {
  std::uint64_t small = 0;
  const auto append = [&](auto field) { small = small << 8 | static_cast<std::uint8_t>(field); };
  append(count.kind);
  append(count.work);
  append(count.collective);
  append(count.phase);
  append(count.stream);
  append(count.communicator);
  append(count.dtype);
  append(count.control);
  return {small, count.shape, count.elements};
}

std::vector<OperationCount> merged_counts(std::span<const FragmentCount> parts) {
  std::vector<OperationCount> counts;
  for (const FragmentCount& part : parts) {
    for (OperationCount count : part.fragment->counts) {
      count.count *= part.times;
      counts.push_back(count);
    }
  }
  std::sort(counts.begin(), counts.end(), [](const OperationCount& a, const OperationCount& b) {
    return sort_key(a) < sort_key(b);
  });
  std::size_t last = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    if (sort_key(counts[i]) == sort_key(counts[last])) {
      counts[last].count += counts[i].count;
    } else {
      counts[++last] = counts[i];
    }
  }
  counts.resize(counts.empty() ? 0 : last + 1);
  return counts;
}

}  // namespace

// ---- workshop ----------------------------------------------------------------------------------

class Summarizer::Workshop {
 public:
  const StepOutline& outline(const Scenario& scenario);
  const Plan& tables() { return tables_.plan(); }

 private:
  /// Which pieces make up a step. With every k-th layer recomputed, those layers have their own.
  struct Recipe {
    const StagePieces* stage = nullptr;
    const SegmentPieces* kept = nullptr;
    const SegmentPieces* dropped = nullptr;
    const StageKind* kind = nullptr;
    bool many = false;  ///< micro-batches
    bool operator==(const Recipe&) const = default;
  };
  struct Step {
    Recipe recipe;
    StepSums sums;
  };

  void forget();
  void compose(const Scenario& scenario, const Walks& walks);
  Model& model_of(const Scenario& scenario, std::int64_t& number);
  const Stages& stages_of(Model& model, const Scenario& scenario, const Schedule& schedule);
  const Walks& walks_of(const Scenario& scenario);
  const StepSums& sums_of(const Scenario& scenario,
                          const Model& model,
                          const Walks& walks,
                          const StageKind& kind,
                          const PieceKeys& keys);
  void add_parts(const StepSums& sums, const StageWalk& walk, ClassOutline& each);
  void count_afresh(const Scenario& scenario);

  OperationCount translated(const OperationCount& count, const PlanSummary& from);

  FragmentStore store_;
  /// What the counts of all fragments index.
  PlanBuilder tables_{Mesh{}, nullptr};
  std::vector<std::unique_ptr<Model>> models_;
  std::unordered_map<Key, SegmentPieces, KeyHash> segments_;
  std::unordered_map<Key, StagePieces, KeyHash> stages_;
  std::unordered_map<Key, Walks, KeyHash> walks_;
  std::vector<Step> steps_ = std::vector<Step>(kSteps);  ///< the latest with each hash
  std::vector<std::unique_ptr<const Fragment>> afresh_;
  StepOutline outline_;
};

/// Everything but models: they are few.
void Summarizer::Workshop::forget() {
  segments_.clear();
  stages_.clear();
  walks_.clear();
  store_.clear();
  tables_ = PlanBuilder(Mesh{}, nullptr);
  steps_.assign(kSteps, {});
}

Model& Summarizer::Workshop::model_of(const Scenario& scenario, std::int64_t& number) {
  const bool dropout = scenario.training.dropout > 0.0;
  const auto matches = [&](const std::unique_ptr<Model>& model) {
    return model->attention == scenario.training.attention && model->dropout == dropout &&
           same_transformer(model->spec, scenario.model);
  };
  const auto found = std::find_if(models_.begin(), models_.end(), matches);
  number = found - models_.begin();
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
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  const bool turns = pipeline.schedule == ScheduleKind::kZbV;
  const std::int64_t every = recompute_every(scenario.training);
  for (const std::unique_ptr<const Stages>& each : model.stages) {
    if (each->degree == pipeline.degree && each->chunks == schedule.chunks &&
        each->turns == turns && each->every == every &&
        each->layers_per_stage == pipeline.layers_per_stage) {
      return *each;
    }
  }
  return *model.stages.emplace_back(
      std::make_unique<const Stages>(make_stages(scenario, model, schedule)));
}

const Walks& Summarizer::Workshop::walks_of(const Scenario& scenario) {
  const PipelineStrategy& pipeline = scenario.strategy.pipeline;
  Key key;
  key.pair(pipeline.degree, scenario.training.accumulate);
  if (pipeline.degree > 1) {
    key.pair(static_cast<std::int64_t>(pipeline.schedule), pipeline.chunks);
  }
  const auto found = walks_.find(key);
  return found != walks_.end() ? found->second
                               : walks_.emplace(key, make_walks(scenario)).first->second;
}

/// The sums of a kind of stage: put together earlier, or now, of pieces recorded earlier, or now.
const StepSums& Summarizer::Workshop::sums_of(const Scenario& scenario,
                                              const Model& model,
                                              const Walks& walks,
                                              const StageKind& kind,
                                              const PieceKeys& keys) {
  const StageForm& form = model.forms[static_cast<std::size_t>(kind.form)];
  const bool shares = form.chunks.front().embedding && form.chunks.back().head;
  const bool mixed = recompute_every(scenario.training) > 1;
  const Recompute kept = mixed ? Recompute::kNone : scenario.training.recompute;
  StagePieces& stage = stages_[stage_key(keys, kind.form)];
  const auto pieces_of = [&](Recompute recompute) -> SegmentPieces& {
    SegmentPieces& pieces = segments_[segment_key(keys, recompute, shares)];
    pieces.forwards_alike = scenario.training.precision != Precision::kAutocast;
    return pieces;
  };
  SegmentPieces& segment = pieces_of(kept);
  SegmentPieces* dropped = mixed ? &pieces_of(Recompute::kFull) : &segment;
  const bool many = scenario.training.accumulate > 1;
  const Recipe recipe{&stage, &segment, dropped, &kind, many};
  std::uint64_t hash = many ? 1 : 0;
  for (const void* part : {static_cast<const void*>(&stage),
                           static_cast<const void*>(&segment),
                           static_cast<const void*>(&kind)}) {
    hash = mix(hash, reinterpret_cast<std::uintptr_t>(part));
  }
  Step& step = steps_[hash % kSteps];
  if (step.recipe == recipe) {
    return step.sums;
  }
  const StepPlan plan{form,
                      kind,
                      recompute_every(scenario.training),
                      walks.ranks[static_cast<std::size_t>(kind.coordinate)],
                      walks.splits,
                      many,
                      reduces_every_pass(scenario),
                      stage,
                      segment,
                      *dropped};
  const auto record = [&](SegmentPieces& pieces, Recompute recompute) {
    if (!has_pieces(plan, pieces)) {
      record_pieces({scenario,
                     recompute,
                     model.graph,
                     walks,
                     kind.coordinate,
                     has_form(plan, pieces, SegmentForm::kBlock),
                     pieces,
                     stage,
                     store_,
                     tables_});
    }
  };
  record(segment, kept);
  if (mixed) {
    record(*dropped, Recompute::kFull);
  }
  step.recipe = recipe;
  put_together(plan, step.sums);
  return step.sums;
}

/// What all ranks of the stage's kind share: operations, and bytes at the end.
void Summarizer::Workshop::add_parts(const StepSums& sums,
                                     const StageWalk& walk,
                                     ClassOutline& each) {
  each.at_start = sums.at_start;
  each.at_end = sums.at_start;
  each.operations = 0;
  const auto add = [&each](
                       const CategoryBytes& delta, std::int64_t operations, std::int64_t times) {
    each.operations += times * operations;
    for (std::size_t c = 0; c < delta.size(); ++c) {
      each.at_end[c] += times * delta[c];
    }
  };
  const std::size_t first = outline_.parts.size();
  outline_.parts.resize(first + sums.fragments.size() + 2);  // at most
  FragmentCount* part = outline_.parts.data() + first;
  for (const Fragment* fragment : {sums.begin, sums.end}) {
    if (fragment != nullptr) {
      *part++ = {fragment, 1};
      add(fragment->delta, fragment->operations, 1);
    }
  }
  for (std::size_t symbol = 0; symbol < walk.totals.size(); ++symbol) {
    const std::int64_t times = walk.totals[symbol];
    const PassSum& pass = sums.passes[symbol];
    if (times == 0 || pass.count == 0) {
      continue;
    }
    add(pass.bytes, pass.operations, times);
    for (std::uint32_t g = pass.first; g < pass.first + pass.count; ++g) {
      const PieceGroup& group = sums.groups[g];
      for (std::uint32_t i = group.first; i < group.first + group.count; ++i) {
        *part++ = {sums.fragments[i], times * group.times};
      }
    }
  }
  each.first_part = static_cast<std::uint32_t>(first);
  outline_.parts.resize(static_cast<std::size_t>(part - outline_.parts.data()));
  each.parts = static_cast<std::uint32_t>(outline_.parts.size() - first);
}

const StepOutline& Summarizer::Workshop::outline(const Scenario& scenario) {
  afresh_.clear();
  outline_.classes.clear();
  outline_.parts.clear();
  if (stages_.size() > kMostStages || store_.size() > kMostFragments ||
      walks_.size() > kMostWalks) {
    forget();
  }
  const Walks* walks = is_composed(scenario) ? &walks_of(scenario) : nullptr;
  if (walks == nullptr || !walks->regular) {
    count_afresh(scenario);
    return outline_;
  }
  try {
    compose(scenario, *walks);
  } catch (...) {
    forget();  // pieces may be half recorded
    throw;
  }
  return outline_;
}

void Summarizer::Workshop::compose(const Scenario& scenario, const Walks& walks) {
  std::int64_t number = 0;
  Model& model = model_of(scenario, number);
  const Stages& stages = stages_of(model, scenario, walks.schedule);
  const PieceKeys keys = piece_keys(scenario, number, walks.splits);
  outline_.mesh = make_context(scenario, *model.graph).mesh;
  outline_.class_axes = class_axes(scenario);
  outline_.pipeline_stretch = walks.stretch;
  const std::size_t ranks = walks.ranks.size();
  outline_.classes.resize(ranks);
  for (std::size_t k = 0; k < stages.kinds.size(); ++k) {
    const StageKind& kind = stages.kinds[k];
    const StepSums& sums = sums_of(scenario, model, walks, kind, keys);
    const auto first = static_cast<std::size_t>(kind.coordinate);
    add_parts(sums, walks.ranks[first], outline_.classes[first]);
    for (std::size_t rank = first; rank < ranks; ++rank) {
      if (stages.kind_of_rank[rank] == k) {
        outline_.classes[rank] = outline_.classes[first];
        outline_.classes[rank].peak = highest(sums, walks.ranks[rank], stages.places[rank]);
      }
    }
  }
}

OperationCount Summarizer::Workshop::translated(const OperationCount& count,
                                                const PlanSummary& from) {
  OperationCount result = count;
  if (count.shape != 0) {
    result.shape = tables_.shape(from.shapes[count.shape]);
  }
  if (count.communicator != kNoCommunicator) {
    const Communicator& group = from.communicators[count.communicator];
    result.communicator =
        tables_.communicator(group.axes, group.pipeline_coordinates, group.control);
  }
  return result;
}

void Summarizer::Workshop::count_afresh(const Scenario& scenario) {
  const PlanSummary summary = count_plan(scenario);
  outline_.mesh = summary.mesh;
  outline_.class_axes = summary.class_axes;
  outline_.pipeline_stretch = summary.pipeline_stretch;
  for (const ProgramSummary& program : summary.classes) {
    auto fragment = std::make_unique<Fragment>();
    for (const OperationCount& count : program.counts) {
      fragment->counts.push_back(translated(count, summary));
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
  return workshop_->tables().shapes;
}

const std::vector<Communicator>& Summarizer::communicators() const {
  return workshop_->tables().communicators;
}

PlanSummary Summarizer::summarize(const Scenario& scenario) {
  const StepOutline& step = outline(scenario);
  PlanSummary summary;
  summary.mesh = step.mesh;
  summary.class_axes = step.class_axes;
  summary.tf32 = scenario.training.precision == Precision::kTf32;
  summary.microbatches = static_cast<std::int32_t>(scenario.training.accumulate);
  summary.pipeline_stretch = step.pipeline_stretch;
  summary.classes.reserve(step.classes.size());
  std::vector<std::pair<std::uint32_t, std::size_t>> merged;  ///< first part, class that has it
  for (const ClassOutline& each : step.classes) {
    const auto known = std::find_if(merged.begin(), merged.end(), [&each](const auto& one) {
      return one.first == each.first_part;
    });
    ProgramSummary& program = summary.classes.emplace_back();
    program.operations = each.operations;
    program.at_start = each.at_start;
    program.at_end = each.at_end;
    program.peak = each.peak;
    if (known != merged.end()) {
      program.counts = summary.classes[known->second].counts;
    } else {
      program.counts = merged_counts(step.parts_of(each));
      merged.emplace_back(each.first_part, summary.classes.size() - 1);
    }
  }
  summary.shapes = shapes();
  summary.communicators = communicators();
  return summary;
}

}  // namespace lockstep
