#include "core/check/value_verifier.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/plan_text.h"

namespace lockstep {

using field::Number;

ValueVerifier::ValueVerifier(const Plan& plan,
                             ValueReference& reference,
                             const ValueFacts& facts,
                             const ValueCheckOptions& options,
                             ValueReport& report)
    : plan_(plan), reference_(reference), facts_(facts), options_(options), report_(report) {}

void ValueVerifier::begin_section(int section, int iteration) {
  section_index_ = section;
  section_ = plan_.sections[static_cast<std::size_t>(section)].kind;
  iteration_ = section_ == SectionKind::kStep ? iteration : iteration_;
  flags_.clear();
  flags_.emplace(0, ValueCoverage{});
  written_ = {};
  other_numbers_written_.clear();
  loss_was_read_ = false;
  evaluated_ = 0;
  for (const Program& program : plan_.sections[static_cast<std::size_t>(section)].programs) {
    for (const Operation& op : program.operations) {
      if (op.work == Work::kLoadBatch) {
        evaluated_ = std::max(evaluated_, std::max<int>(op.microbatch, 0) + 1);
      }
    }
  }
}

void ValueVerifier::end_section() {
  const bool has_loss = section_ == SectionKind::kStep || section_ == SectionKind::kEvaluate;
  if (has_loss && !loss_was_read_) {
    general_problem(-1, "no host has read the loss");
  }
  if (section_ == SectionKind::kSave) {
    const std::string missing = written_.missing(graph());
    if (!missing.empty()) {
      general_problem(-1, "the checkpoint lacks elements: " + missing);
    }
    check_saved_statistics();
  }
}

// ---- problems ----------------------------------------------------------------------------------

bool ValueVerifier::enough() const {
  return static_cast<int>(report_.problems.size()) >= options_.max_problems;
}

void ValueVerifier::problem(const ValueSite& site, std::string text) {
  if (enough()) {
    return;
  }
  std::string where = fmt::format("rank {}", site.rank);
  if (section_ == SectionKind::kStep) {
    where += fmt::format(", iteration {}", iteration_);
  }
  const int class_index = plan_.class_of_rank(site.rank);
  report_.problems.push_back(
      {site.rank,
       iteration_,
       site.section,
       static_cast<std::int64_t>(site.index),
       fmt::format(
           "{}: {}: {}", where, describe(plan_, class_index, site.section, site.index), text)});
}

void ValueVerifier::general_problem(int rank, std::string text) {
  if (enough()) {
    return;
  }
  std::string where = section_text(plan_, section_index_);
  if (section_ == SectionKind::kStep) {
    where += fmt::format(", iteration {}", iteration_);
  }
  if (rank >= 0) {
    where = fmt::format("rank {}, {}", rank, where);
  }
  report_.problems.push_back(
      {rank, iteration_, section_index_, -1, fmt::format("after {}: {}", where, text)});
}

std::string ValueVerifier::version_text(Number number) {
  if (number == 0) {
    return "zeros";
  }
  for (int k = 0; k <= std::max(iteration_, 0); ++k) {
    const ValueIteration& known = reference_.iteration(k);
    const auto found = known.parameter_of.find(number);
    if (found != known.parameter_of.end()) {
      return fmt::format("version {} of {}", k, graph().parameter_name(found->second));
    }
    for (std::size_t p = 0; p < known.after.size(); ++p) {
      if (known.after[p] == number) {
        return fmt::format(
            "version {} of {}", k + 1, graph().parameter_name(static_cast<std::int32_t>(p)));
      }
    }
  }
  return "no version of any parameter";
}

std::int32_t ValueVerifier::parameter_hint(const ValueSite& site) const {
  const auto class_index = static_cast<std::size_t>(plan_.class_of_rank(site.rank));
  if (site.op->layout != kNoLayout && plan_.layouts[site.op->layout].entries.size() == 1) {
    return plan_.layouts[site.op->layout].entries.front().parameter;
  }
  const Program& program =
      plan_.sections[static_cast<std::size_t>(site.section)].programs[class_index];
  const std::span<const View> views = program.inputs_of(*site.op);
  return views.empty() ? -1 : plan_.buffers[class_index][views.front().buffer].parameter;
}

/// Remembers the first work whose result no work of the one-rank plan has; it may be a part.
void ValueVerifier::traced(const ValueSite& site, Number samples, Number result) {
  if (!first_difference_.empty() || result == 0) {
    return;
  }
  const int t = plan_.mesh.size(Axis::kTensor);
  const int c = plan_.mesh.coordinate(site.rank, Axis::kTensor);
  const Number whole = field::multiply(result, field::inverse(field::part(c, c + 1, t)));
  const ValueIteration& now =
      section_ == SectionKind::kEvaluate ? reference_.iteration(iteration_ + 1) : expected();
  if (now.results.count(traced_number(samples, result)) == 0 &&
      now.results.count(traced_number(samples, whole)) == 0) {
    first_difference_ =
        fmt::format("rank {}, iteration {}: {}",
                    site.rank,
                    iteration_,
                    describe(plan_, plan_.class_of_rank(site.rank), site.section, site.index));
  }
}

// ---- first values ------------------------------------------------------------------------------

namespace {

bool survives(const std::vector<std::vector<std::uint8_t>>& sources, std::size_t what, int rank) {
  return what >= sources.size() || sources[what].empty() ||
         sources[what][static_cast<std::size_t>(rank)] != 0;
}

/// A value that only this rank has.
Number own_number(Number shared, int rank) {
  return field::Hash(shared).add(static_cast<Number>(rank)).number();
}

}  // namespace

Number ValueVerifier::initial(const ValueSite& site, std::int32_t parameter) {
  const std::int32_t canonical = canonical_parameter(graph(), parameter);
  const Number first = first_version(canonical);
  return survives(facts_.first_values, static_cast<std::size_t>(parameter), site.rank)
             ? first
             : own_number(first, site.rank);
}

Number ValueVerifier::initial_statistics(const ValueSite& site, std::uint32_t buffer) {
  const Number first = first_statistics_number(buffer);
  return survives(facts_.first_statistics, buffer, site.rank) ? first
                                                              : own_number(first, site.rank);
}

// ---- optimizer ---------------------------------------------------------------------------------

Number ValueVerifier::final_gradient(std::int32_t parameter) {
  const ValueIteration& now = expected();
  return field::multiply(now.gradient[static_cast<std::size_t>(parameter)], now.coefficient);
}

void ValueVerifier::step(const ValueSite& site, ValueStep& step) {
  const ValueIteration& now = expected();
  const auto found = now.parameter_of.find(step.parameter.number);
  if (found == now.parameter_of.end()) {
    problem(
        site,
        fmt::format(
            "updates {}, expected version {}", version_text(step.parameter.number), iteration_));
    return;
  }
  const std::int32_t parameter = found->second;
  const auto p = static_cast<std::size_t>(parameter);
  const std::string rows = fmt::format("{} elements {} to {}",
                                       parameter_text(graph(), parameter, step.parameter),
                                       step.parameter.begin,
                                       step.parameter.begin + step.elements);
  ++report_.gradients;
  if (step.gradient.number != final_gradient(parameter)) {
    problem(site,
            fmt::format("gradient of {}: {}",
                        rows,
                        explain_gradient(now,
                                         facts_.setting,
                                         parameter,
                                         plan_.mesh.size(Axis::kTensor),
                                         step.gradient.number)));
  } else if (step.gradient.number != 0 && (step.gradient.begin != step.parameter.begin ||
                                           !step.gradient.same_slice(step.parameter))) {
    problem(site,
            fmt::format("gradient of {} is that of elements from {} on, slice {} of {}",
                        rows,
                        step.gradient.begin,
                        step.gradient.index,
                        step.gradient.of));
  }
  for (int s = 0; s < step.states; ++s) {
    if (step.state[s] != now.states_before[p][static_cast<std::size_t>(s)]) {
      problem(site, fmt::format("optimizer state {} of {} is not that of the last step", s, rows));
    }
    step.state[s] = next_state(s, step.state[s], step.gradient.number);
  }
  step.parameter.number = next_parameter(step);
}

/// `where` follows the gradient's name.
void ValueVerifier::wrong_gradient(const ValueSite& site, Number number, const char* where) {
  const std::int32_t hint = parameter_hint(site);
  if (hint < 0) {
    problem(site, fmt::format("a gradient {} is not that of any parameter", where));
    return;
  }
  const ValueIteration& now = expected();
  problem(site,
          fmt::format("gradient of {} {}: {}",
                      graph().parameter_name(hint),
                      where,
                      explain_gradient(now,
                                       facts_.setting,
                                       canonical_parameter(graph(), hint),
                                       plan_.mesh.size(Axis::kTensor),
                                       field::multiply(number, now.coefficient))));
}

Number ValueVerifier::square(const ValueSite& site, const ValuePiece& gradient) {
  const ValueIteration& now = expected();
  const auto found = now.gradient_of.find(gradient.symbol.number);
  if (found != now.gradient_of.end()) {
    return square_number(graph(), found->second, gradient.symbol, gradient.elements);
  }
  wrong_gradient(site, gradient.symbol.number, "in the norm");
  return gradient.symbol.number;
}

Number ValueVerifier::clip(const ValueSite& site, Number sum) {
  const ValueIteration& now = expected();
  if (sum == now.squares) {
    return clip_number(sum);
  }
  std::string text = "the squared norm is not the sum over all gradients, each counted once";
  for (const int times : {2, plan_.mesh.size(Axis::kTensor), plan_.mesh.count(kDataAxes)}) {
    if (times > 1 && sum == field::multiply(now.squares, field::of_integer(times))) {
      text = fmt::format("the squared norm is {} times the sum over all gradients", times);
    }
  }
  problem(site, std::move(text));
  return clip_number(sum);
}

// ---- flags -------------------------------------------------------------------------------------

Number ValueVerifier::look(const ValueSite& site, const ValueSlab& gradient, Number flag) {
  const ValueIteration& now = expected();
  ValueCoverage seen;
  const auto before = flags_.find(flag);
  if (before == flags_.end()) {
    problem(site, "the overflow flag holds something else");
  } else {
    seen = before->second;
  }
  for (const ValuePiece& piece : gradient) {
    if (piece.symbol.number == 0) {
      continue;
    }
    const auto found = now.gradient_of.find(piece.symbol.number);
    if (found == now.gradient_of.end()) {
      wrong_gradient(site, piece.symbol.number, "after unscaling");
      continue;
    }
    seen.add(found->second, piece.symbol, piece.elements);
  }
  const Number number = seen.number();
  flags_.emplace(number, std::move(seen));
  return number;
}

Number ValueVerifier::merge_flags(Number a, Number b) {
  const auto first = flags_.find(a);
  const auto second = flags_.find(b);
  if (first == flags_.end() || second == flags_.end()) {
    return field::Hash(a).add(b).number();
  }
  ValueCoverage both = first->second;
  both.add(second->second);
  const Number number = both.number();
  flags_.emplace(number, std::move(both));
  return number;
}

void ValueVerifier::guarded(const ValueSite& site, Number flag) {
  const auto found = flags_.find(flag);
  if (found == flags_.end()) {
    problem(site, "the guard is not an overflow flag");
    return;
  }
  const std::string missing = found->second.missing(graph());
  if (!missing.empty()) {
    problem(site, "ranks may disagree on the overflow flag: in what it has seen, " + missing);
  }
}

// ---- the host ----------------------------------------------------------------------------------

void ValueVerifier::host_reads(const ValueSite& site, Number number) {
  if (section_ == SectionKind::kEvaluate) {
    const Number loss = reference_.evaluation_loss(iteration_ + 1, std::max(evaluated_, 1));
    loss_was_read_ = loss_was_read_ || number == loss;
    if (number != loss) {
      problem(site, "the host reads a number that is not the mean loss of the evaluation");
    }
    return;
  }
  if (section_ != SectionKind::kStep) {
    return;
  }
  const ValueIteration& now = expected();
  const bool known = number == now.loss || number == now.tokens || number == now.squares ||
                     number == now.coefficient || flags_.count(number) != 0;
  loss_was_read_ = loss_was_read_ || number == now.loss;
  if (known && number != 0) {
    return;
  }
  std::string text =
      "the host reads a number that is not the mean loss, token count, norm or overflow flag";
  for (const int times :
       {facts_.setting.data, facts_.setting.microbatches, plan_.mesh.size(Axis::kTensor)}) {
    if (number == field::multiply(now.loss, field::of_integer(times))) {
      text = fmt::format("the host reads {} times the mean loss", times);
    } else if (field::multiply(number, field::of_integer(times)) == now.loss) {
      text = fmt::format("the host reads 1/{} of the mean loss", times);
    }
  }
  problem(site, std::move(text));
}

int ValueVerifier::statistics_root(int rank) const {
  return plan_.mesh.with(plan_.mesh.with(rank, Axis::kData, 0), Axis::kDataReplica, 0);
}

void ValueVerifier::statistics(const ValueSite& site,
                               std::uint32_t buffer,
                               Number before,
                               Number after) {
  if (section_ != SectionKind::kStep && section_ != SectionKind::kEvaluate) {
    return;
  }
  std::vector<Number>& own = statistics_[{site.rank, buffer}];
  const std::size_t n = own.size();
  // In evaluation nothing changes after the first exchange.
  const bool evaluates = section_ == SectionKind::kEvaluate;
  const auto m = static_cast<std::size_t>(evaluates ? 0 : std::max<int>(site.op->microbatch, 0));
  Number should = first_statistics_number(buffer);
  if (n > 0) {
    should = own[n - 1];
    if (m < facts_.shares_statistics.size() && facts_.shares_statistics[m] != 0) {
      const std::vector<Number>& of_root = statistics_[{statistics_root(site.rank), buffer}];
      should = n - 1 < of_root.size() ? of_root[n - 1] : 0;
    }
  }
  if (evaluates) {
    if (before != should) {
      problem(site,
              "batch norm evaluates with statistics that are not the ones of the last update");
    }
    return;
  }
  if (before != should) {
    problem(site, "batch norm updates statistics that are not the ones of the last update");
  }
  statistics_[{site.rank, buffer}].push_back(after);
}

}  // namespace lockstep
