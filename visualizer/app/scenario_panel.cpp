#include "visualizer/app/scenario_panel.h"

#include <fmt/format.h>
#include <imgui.h>

#include "core/limits.h"
#include "visualizer/ui/reasons.h"
#include "visualizer/ui/state.h"

namespace lockstep::app {
namespace {

using ui::S;

std::int64_t& nodes(Scenario& s) {
  return s.cluster.nodes;
}
std::int64_t& dp(Scenario& s) {
  return s.strategy.data.degree;
}
std::int64_t& replicate(Scenario& s) {
  return s.strategy.data.replicate;
}
std::int64_t& tp(Scenario& s) {
  return s.strategy.tensor.degree;
}
std::int64_t& pp(Scenario& s) {
  return s.strategy.pipeline.degree;
}
std::int64_t& chunks(Scenario& s) {
  return s.strategy.pipeline.chunks;
}
std::int64_t& micro_batch(Scenario& s) {
  return s.training.micro_batch;
}
std::int64_t& accumulate(Scenario& s) {
  return s.training.accumulate;
}
std::int64_t& global_batch(Scenario& s) {
  return s.training.global_batch;
}
std::int64_t& seq_len(Scenario& s) {
  return s.training.seq_len;
}

// Degrees that were the reason for more nodes let go of them: resolved() finds how many it takes.
void free_nodes(Scenario& s) {
  s.cluster.nodes = 1;
}
// One of the two says it all; the other would contradict.
void free_global_batch(Scenario& s) {
  s.training.global_batch = 0;
}
void free_accumulate(Scenario& s) {
  s.training.accumulate = 1;
}

void one_stage_has_one_chunk(Scenario& s) {
  free_nodes(s);
  if (s.strategy.pipeline.degree == 1) {
    s.strategy.pipeline.chunks = 1;
  }
  s.strategy.pipeline.layers_per_stage.clear();
  s.strategy.pipeline.actions_csv.clear();
}

void one_rank_has_no_sequence_parallel(Scenario& s) {
  free_nodes(s);
  if (s.strategy.tensor.degree == 1) {
    s.strategy.tensor.sequence_parallel = false;
  }
}

constexpr NumberField kNodes{"cluster.nodes", nodes, 1, kMaxWorldSize, false, nullptr};
constexpr NumberField kDp{"strategy.data.degree", dp, 1, kMaxWorldSize, true, free_nodes};
constexpr NumberField kReplicate{
    "strategy.data.replicate", replicate, 1, kMaxWorldSize, true, nullptr};
constexpr NumberField kTp{
    "strategy.tensor.degree", tp, 1, kMaxWorldSize, true, one_rank_has_no_sequence_parallel};
constexpr NumberField kPp{
    "strategy.pipeline.degree", pp, 1, kMaxWorldSize, true, one_stage_has_one_chunk};
constexpr NumberField kChunks{"strategy.pipeline.chunks", chunks, 1, 64, false, nullptr};
constexpr NumberField kMicro{"training.micro_batch", micro_batch, 1, kMaxMicroBatch, true, nullptr};
constexpr NumberField kAccumulate{
    "training.accumulate", accumulate, 1, kMaxAccumulate, true, free_global_batch};
constexpr NumberField kGlobal{
    "training.global_batch", global_batch, 0, kMaxGlobalBatch, true, free_accumulate};
constexpr NumberField kSeqLen{"training.seq_len", seq_len, 0, kMaxSequence, true, nullptr};

void title_of(S title) {
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextUnformatted(ui::tr(title));
  ImGui::PopStyleColor();
}

void heading(S title) {
  ImGui::Dummy(ImVec2(1, ui::scaled(4)));
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().accent);
  ImGui::TextUnformatted(ui::tr(title));
  ImGui::PopStyleColor();
  ImGui::Separator();
}

void tooltip(const std::string& text) {
  if (text.empty() || !ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) {
    return;
  }
  ImGui::BeginTooltip();
  ImGui::PushTextWrapPos(ui::scaled(320));
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopTextWrapPos();
  ImGui::EndTooltip();
}

}  // namespace

const std::vector<std::pair<const char*, S>>& ScenarioPanel::fields() {
  static const std::vector<std::pair<const char*, S>> all{
      {"model", S::kFieldModel},
      {"cluster", S::kFieldCluster},
      {kNodes.key, S::kFieldNodes},
      {"strategy.data.kind", S::kFieldDataKind},
      {kDp.key, S::kFieldDp},
      {kReplicate.key, S::kFieldReplicate},
      {kTp.key, S::kFieldTp},
      {"strategy.tensor.sequence_parallel", S::kFieldSequence},
      {kPp.key, S::kFieldPp},
      {"strategy.pipeline.schedule", S::kFieldSchedule},
      {kChunks.key, S::kFieldChunks},
      {kMicro.key, S::kFieldMicro},
      {kAccumulate.key, S::kFieldAccumulate},
      {kGlobal.key, S::kFieldGlobal},
      {kSeqLen.key, S::kFieldSeqLen},
      {"training.precision", S::kFieldPrecision},
      {"training.optimizer", S::kFieldOptimizer},
      {"training.recompute", S::kFieldRecompute}};
  return all;
}

void ScenarioPanel::problems_of(const Session& session, const char* key) {
  shown_keys_.insert(key);
  for (const Problem& problem : session.problems().list()) {
    if (problem.place == key) {
      ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
      const std::string message = ui::reason_text(problem.message);
      ImGui::TextWrapped("%s", message.c_str());
      ImGui::PopStyleColor();
      ui::tag(fmt::format("problem.{}", key), message);
    }
  }
}

void ScenarioPanel::other_problems(const Session& session) const {
  for (const Problem& problem : session.problems().list()) {
    if (!shown_keys_.contains(problem.place)) {
      ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
      const std::string message = ui::reason_text(problem.message);
      ImGui::TextWrapped("%s: %s", problem.place.c_str(), message.c_str());
      ImGui::PopStyleColor();
      ui::tag(fmt::format("problem.{}", problem.place), message);
    }
  }
}

const ScenarioPanel::Neighbours& ScenarioPanel::neighbours(const Session& session,
                                                           const NumberField& field) {
  if (session.revision() != revision_) {
    neighbours_.clear();
    revision_ = session.revision();
  }
  const auto at = neighbours_.find(field.key);
  if (at != neighbours_.end()) {
    return at->second;
  }
  return neighbours_
      .emplace(field.key,
               Neighbours{neighbour(field, session.scenario(), -1),
                          neighbour(field, session.scenario(), 1)})
      .first->second;
}

void ScenarioPanel::choice(Session& session, S title, const char* key, MakeChoices make) {
  title_of(title);
  const std::vector<Choice> choices = make(session.scenario());
  std::string preview = "-";
  for (const Choice& it : choices) {
    preview = it.current ? it.name : preview;
  }
  ImGui::SetNextItemWidth(-1);
  ui::focus_if_wanted(key);
  const bool open = ImGui::BeginCombo(fmt::format("##{}", key).c_str(), preview.c_str());
  if (!open) {
    ui::tag(key, preview);
    problems_of(session, key);
    return;
  }
  const Choice* chosen = nullptr;
  for (const Choice& it : choices) {
    const std::string reason = it.current ? "" : reason_against(session.scenario(), it.change);
    ImGui::PushStyleColor(ImGuiCol_Text, reason.empty() ? ui::theme().text : ui::theme().disabled);
    const std::string shown = (reason.empty() ? "" : "\xC3\x97 ") + it.name;
    if (ImGui::Selectable(shown.c_str(), it.current) && reason.empty()) {
      chosen = &it;
    }
    ImGui::PopStyleColor();
    ui::tag(fmt::format("{}.{}", key, it.name), reason, reason.empty());
    if (it.current && ImGui::IsWindowAppearing()) {
      ImGui::SetItemDefaultFocus();
    }
    tooltip(ui::reason_text(reason));
  }
  ImGui::EndCombo();
  if (chosen != nullptr && !chosen->current) {
    session.edit(chosen->change);
  }
}

void ScenarioPanel::step_button(Session& session,
                                const NumberField& field,
                                const Neighbour& to,
                                bool more) {
  const std::string id = fmt::format("{}##{}", more ? "+" : "\xE2\x88\x92", field.key);
  const bool possible = to.value.has_value();
  ImGui::BeginDisabled(!possible);
  ImGui::PushStyleColor(ImGuiCol_Text, possible ? ui::theme().text : ui::theme().disabled);
  const bool hit = ImGui::Button(id.c_str(), ImVec2(ImGui::GetFrameHeight(), 0));
  ImGui::PopStyleColor();
  ImGui::EndDisabled();
  ui::tag(fmt::format("{}.{}", field.key, more ? "more" : "less"),
          possible ? std::to_string(*to.value) : to.reason,
          possible);
  if (possible) {
    tooltip(fmt::format("{}: {}", ui::tr(more ? S::kMore : S::kLess), *to.value));
  } else if (!to.reason.empty()) {
    tooltip(ui::trf(S::kNoChoice, ui::reason_text(to.reason)));
  }
  if (hit && possible) {
    const std::int64_t value = *to.value;
    session.edit([&](Scenario& s) { set(field, s, value); });
  }
}

void ScenarioPanel::number_text(Session& session, const NumberField& field, std::int64_t shown) {
  std::int64_t value = shown;
  ui::focus_if_wanted(field.key);
  const std::string id = fmt::format("##{}", field.key);
  if (ImGui::InputScalar(id.c_str(),
                         ImGuiDataType_S64,
                         &value,
                         nullptr,
                         nullptr,
                         "%lld",
                         ImGuiInputTextFlags_AutoSelectAll)) {
    typed_ = {field.key, value};
  }
  const bool done = ImGui::IsItemDeactivatedAfterEdit();
  ui::tag(field.key, std::to_string(shown));
  if (done && typed_ && typed_->first == field.key) {
    value = typed_->second;
    typed_.reset();
    if (value != shown) {
      session.edit([&](Scenario& s) { set(field, s, value); });
    }
  }
}

void ScenarioPanel::number(Session& session,
                           S title,
                           const NumberField& field,
                           std::int64_t resolved_value) {
  title_of(title);
  const Neighbours to = neighbours(session, field);
  const float button = ImGui::GetFrameHeight() + ImGui::GetStyle().ItemInnerSpacing.x;
  step_button(session, field, to.less, false);
  ImGui::SameLine(0, ImGui::GetStyle().ItemInnerSpacing.x);
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x - button);
  number_text(session, field, resolved_value);
  ImGui::SameLine(0, ImGui::GetStyle().ItemInnerSpacing.x);
  step_button(session, field, to.more, true);
  problems_of(session, field.key);
}

void ScenarioPanel::check(
    Session& session, S title, const char* key, bool value, const Change& change) {
  const std::string reason = reason_against(session.scenario(), change);
  bool shown = value;
  ui::focus_if_wanted(key);
  ImGui::BeginDisabled(!reason.empty());
  ImGui::PushStyleColor(ImGuiCol_Text, reason.empty() ? ui::theme().text : ui::theme().disabled);
  const bool hit = ImGui::Checkbox(fmt::format("{}##{}", ui::tr(title), key).c_str(), &shown);
  ImGui::PopStyleColor();
  ImGui::EndDisabled();
  ui::tag(key, value ? "true" : "false", reason.empty());
  tooltip(ui::reason_text(reason));
  problems_of(session, key);
  if (hit) {
    session.edit(change);
  }
}

void ScenarioPanel::summary(Session& session) const {
  const std::size_t count = session.problems().list().size();
  if (count > 0) {
    ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().bad);
    const std::string text = count == 1 ? ui::tr(S::kOneProblem) : ui::trf(S::kProblems, count);
    ImGui::TextWrapped("%s", text.c_str());
    ImGui::PopStyleColor();
    ui::tag("problems", std::to_string(count));
  }
  const Scenario now = resolved(session.scenario());
  ImGui::PushStyleColor(ImGuiCol_Text, ui::theme().muted);
  ImGui::TextWrapped("%s, %s",
                     ui::trf(S::kRanksTotal, now.strategy.world_size(), now.cluster.nodes).c_str(),
                     ui::trf(S::kSamplesTotal, samples_per_step(now)).c_str());
  ImGui::PopStyleColor();
}

void ScenarioPanel::where_section(Session& session) {
  heading(S::kSectionWhere);
  choice(session, S::kFieldModel, "model", model_choices);
  choice(session, S::kFieldCluster, "cluster", cluster_choices);
  number(session, S::kFieldNodes, kNodes, resolved(session.scenario()).cluster.nodes);
}

void ScenarioPanel::strategy_section(Session& session) {
  heading(S::kSectionStrategy);
  choice(session, S::kFieldDataKind, "strategy.data.kind", data_kind_choices);
  number(session, S::kFieldDp, kDp, session.scenario().strategy.data.degree);
  if (session.scenario().strategy.data.kind == DataKind::kHsdp) {
    number(session, S::kFieldReplicate, kReplicate, session.scenario().strategy.data.replicate);
  }
  number(session, S::kFieldTp, kTp, session.scenario().strategy.tensor.degree);
  const bool sequence = session.scenario().strategy.tensor.sequence_parallel;
  check(session,
        S::kFieldSequence,
        "strategy.tensor.sequence_parallel",
        sequence,
        [sequence](Scenario& s) { s.strategy.tensor.sequence_parallel = !sequence; });
  number(session, S::kFieldPp, kPp, session.scenario().strategy.pipeline.degree);
  if (session.scenario().strategy.pipeline.degree > 1) {
    choice(session, S::kFieldSchedule, "strategy.pipeline.schedule", schedule_choices);
    number(session, S::kFieldChunks, kChunks, session.scenario().strategy.pipeline.chunks);
  }
}

void ScenarioPanel::training_section(Session& session) {
  heading(S::kSectionTraining);
  const Scenario now = resolved(session.scenario());
  number(session, S::kFieldMicro, kMicro, now.training.micro_batch);
  number(session, S::kFieldAccumulate, kAccumulate, now.training.accumulate);
  number(session, S::kFieldGlobal, kGlobal, session.scenario().training.global_batch);
  number(session, S::kFieldSeqLen, kSeqLen, now.training.seq_len);
  choice(session, S::kFieldPrecision, "training.precision", precision_choices);
  choice(session, S::kFieldOptimizer, "training.optimizer", optimizer_choices);
  choice(session, S::kFieldRecompute, "training.recompute", recompute_choices);
}

void ScenarioPanel::draw(Session& session) {
  if (!session.has_scenario()) {
    return;
  }
  summary(session);
  shown_keys_.clear();
  where_section(session);
  strategy_section(session);
  training_section(session);
  other_problems(session);
}

}  // namespace lockstep::app
