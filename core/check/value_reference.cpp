#include "core/check/value_reference.h"

#include <fmt/format.h>

#include "core/check.h"
#include "core/plan_text.h"

namespace lockstep {

using field::Number;

Number next_state(int which, Number state, Number gradient) {
  return field::Hash(0x73746174ULL)
      .add(static_cast<Number>(which))
      .add(state)
      .add(gradient)
      .number();
}

Number next_parameter(const ValueStep& step) {
  field::Hash hash(0x73746570ULL);
  hash.add(step.parameter.number).add(step.gradient.number);
  for (int s = 0; s < step.states; ++s) {
    hash.add(step.state[s]);
  }
  return hash.number();
}

Number first_version(std::int32_t canonical) {
  return field::Hash(0x66697273ULL).add(static_cast<Number>(canonical)).number();
}

Number traced_number(Number samples, Number result) {
  return field::Hash(samples).add(result).number();
}

Number clip_number(Number sum_of_squares) {
  return field::Hash(0x636c6970ULL).add(sum_of_squares).number();
}

Number square_number(const ModelGraph& graph,
                     std::int32_t parameter,
                     const ValueSymbol& gradient,
                     std::int64_t elements) {
  const std::int64_t all = slice_elements(graph, parameter, gradient.of);
  const Number part = field::multiply(field::part(gradient.begin, gradient.begin + elements, all),
                                      field::part(gradient.index, gradient.index + 1, gradient.of));
  return field::multiply(field::multiply(gradient.number, gradient.number), part);
}

// ---- recorder ----------------------------------------------------------------------------------

/// Hooks of the reference run: parameters stay as they are, gradients are noted.
class ValueReference::Recorder : public ValueHooks {
 public:
  Recorder(const Plan& plan, bool with_trace) : plan_(plan), with_trace_(with_trace) {}

  void begin(ValueIteration& iteration, int copies) {
    iteration_ = &iteration;
    gradients.assign(static_cast<std::size_t>(copies),
                     std::vector<Number>(iteration.before.size(), 0));
    losses.assign(static_cast<std::size_t>(copies), 0);
    read.assign(static_cast<std::size_t>(copies), 0);
  }

  void problem(const ValueSite& site, std::string text) override {
    if (wrong.empty()) {
      wrong =
          fmt::format("one-rank plan: {}: {}", describe(plan_, 0, site.section, site.index), text);
    }
  }
  bool enough() const override { return !wrong.empty(); }
  Number initial(const ValueSite&, std::int32_t parameter) override {
    return first_version(canonical_parameter(*plan_.graph, parameter));
  }
  Number initial_statistics(const ValueSite&, std::uint32_t buffer) override {
    return first_statistics_number(buffer);
  }
  void step(const ValueSite& site, ValueStep& step) override {
    const auto found = iteration_->parameter_of.find(step.parameter.number);
    if (found == iteration_->parameter_of.end() || step.gradient.begin != step.parameter.begin) {
      problem(site, "the optimizer step does not fit the parameter");
      return;
    }
    states = step.states;
    gradients[static_cast<std::size_t>(site.rank)][static_cast<std::size_t>(found->second)] =
        step.gradient.number;
  }
  Number square(const ValueSite&, const ValuePiece&) override { return 0; }
  Number clip(const ValueSite&, Number) override { return 1; }
  Number look(const ValueSite&, const ValueSlab&, Number flag) override { return flag; }
  Number merge_flags(Number a, Number) override { return a; }
  void guarded(const ValueSite&, Number) override {}
  void host_reads(const ValueSite& site, Number number) override {
    const auto rank = static_cast<std::size_t>(site.rank);
    if (read[rank]++ == 0) {
      losses[rank] = number;
    }
  }
  void released(const ValueSite&, const ValueSlab&) override {}
  void shard_written(const ValueSite&, const ValueSlab&) override {}
  void statistics(const ValueSite&, std::uint32_t, Number, Number) override {}
  bool traces() const override { return with_trace_; }
  void traced(const ValueSite&, Number samples, Number result) override {
    iteration_->results.insert(traced_number(samples, result));
  }

  std::string wrong;
  int states = 0;
  std::vector<std::vector<Number>> gradients;  ///< by copy and parameter
  std::vector<Number> losses;                  ///< by copy: the first number that the host reads
  std::vector<int> read;

 private:
  const Plan& plan_;
  bool with_trace_ = false;
  ValueIteration* iteration_ = nullptr;
};

// ---- reference ---------------------------------------------------------------------------------

ValueReference::ValueReference(const Plan& plan, const ValueSetting& setting, bool traces)
    : plan_(plan), setting_(setting), recorder_(std::make_unique<Recorder>(plan, traces)) {
  LOCKSTEP_CHECK(plan.mesh.world_size() == 1 && plan.microbatches == 1,
                 "the reference plan has one rank and one micro-batch");
  machine_ = std::make_unique<ValueMachine>(plan, *recorder_, ValueMachineOptions{setting.data});
  start();
}

ValueReference::~ValueReference() = default;

bool ValueReference::traces() const {
  return recorder_->traces();
}

void ValueReference::start() {
  auto first = std::make_unique<ValueIteration>();
  const std::int32_t count = plan_.graph->parameter_total();
  for (std::int32_t p = 0; p < count; ++p) {
    first->before.push_back(first_version(canonical_parameter(*plan_.graph, p)));
    first->parameter_of.emplace(first->before.back(), canonical_parameter(*plan_.graph, p));
  }
  first->states_before.resize(first->before.size());
  recorder_->begin(*first, setting_.data);
  iterations_.push_back(std::move(first));
  for (std::size_t s = 0; s < plan_.sections.size(); ++s) {
    if (plan_.sections[s].kind == SectionKind::kInit) {
      machine_->run(static_cast<int>(s), -1);
    }
  }
  run_step(0);
}

const ValueIteration& ValueReference::iteration(int k) {
  while (static_cast<int>(iterations_.size()) <= k) {
    make_next();
  }
  return *iterations_[static_cast<std::size_t>(k)];
}

/// Gradients, loss and next parameters of the newest iteration, whose parameters are known.
void ValueReference::run_step(int k) {
  ValueIteration& now = *iterations_[static_cast<std::size_t>(k)];
  const auto section = static_cast<int>(&plan_.step(k) - plan_.sections.data());
  const std::size_t parameters = now.before.size();
  now.contributions.assign(parameters, {});
  const auto microbatches = static_cast<std::size_t>(setting_.microbatches);
  const std::size_t places = static_cast<std::size_t>(setting_.data) * microbatches;
  for (std::vector<Number>& by_place : now.contributions) {
    by_place.assign(places, 0);
  }
  const Number mean = field::fraction(1, static_cast<std::int64_t>(places));
  std::vector<Number> counts(places, 0);
  std::vector<Number> losses(places, 0);
  for (int m = 0; m < setting_.microbatches; ++m) {
    recorder_->begin(now, setting_.data);
    machine_->run(section, k, m);
    for (int d = 0; d < setting_.data; ++d) {
      const auto place = static_cast<std::size_t>(d) * microbatches + static_cast<std::size_t>(m);
      for (std::size_t p = 0; p < parameters; ++p) {
        now.contributions[p][place] = recorder_->gradients[static_cast<std::size_t>(d)][p];
      }
      losses[place] = recorder_->losses[static_cast<std::size_t>(d)];
      counts[place] = token_count_of_batch(k, d, m);
      now.tokens = field::add(now.tokens, counts[place]);
    }
  }
  problem_ = recorder_->wrong;
  const Number per_token = field::inverse(now.tokens);
  now.gradient.assign(parameters, 0);
  for (std::size_t place = 0; place < places; ++place) {
    const Number weight = setting_.by_tokens ? field::multiply(counts[place], per_token) : mean;
    now.loss = field::add(now.loss, field::multiply(losses[place], weight));
    for (std::size_t p = 0; p < parameters; ++p) {
      Number& contribution = now.contributions[p][place];
      contribution = field::multiply(contribution, weight);
      now.gradient[p] = field::add(now.gradient[p], contribution);
    }
  }
  combine(now);
}

/// Norm, coefficient and the parameters after the step.
void ValueReference::combine(ValueIteration& now) const {
  const ModelGraph& graph = *plan_.graph;
  for (std::size_t p = 0; p < now.before.size(); ++p) {
    const auto id = static_cast<std::int32_t>(p);
    if (canonical_parameter(graph, id) == id) {
      now.gradient_of.emplace(now.gradient[p], id);
      now.squares = field::add(
          now.squares,
          square_number(graph, id, {now.gradient[p], 0, 0, 1}, slice_elements(graph, id, 1)));
    }
  }
  now.coefficient = setting_.clips ? clip_number(now.squares) : 1;
  for (std::size_t p = 0; p < now.before.size(); ++p) {
    const std::size_t from =
        static_cast<std::size_t>(canonical_parameter(graph, static_cast<std::int32_t>(p)));
    ValueStep step;
    step.parameter.number = now.before[from];
    step.gradient.number = field::multiply(now.gradient[from], now.coefficient);
    step.states = recorder_->states;
    for (int s = 0; s < step.states; ++s) {
      step.state[s] =
          next_state(s, now.states_before[from][static_cast<std::size_t>(s)], step.gradient.number);
    }
    now.after.push_back(next_parameter(step));
  }
}

void ValueReference::make_next() {
  const ValueIteration& last = *iterations_.back();
  auto next = std::make_unique<ValueIteration>();
  next->before = last.after;
  for (std::size_t p = 0; p < next->before.size(); ++p) {
    const auto from =
        static_cast<std::size_t>(canonical_parameter(*plan_.graph, static_cast<std::int32_t>(p)));
    next->parameter_of.emplace(next->before[p], static_cast<std::int32_t>(from));
    const Number gradient = field::multiply(last.gradient[from], last.coefficient);
    std::array<Number, 2> states{};
    for (int s = 0; s < recorder_->states; ++s) {
      const auto which = static_cast<std::size_t>(s);
      states[which] = next_state(s, last.states_before[from][which], gradient);
    }
    next->states_before.push_back(states);
  }
  iterations_.push_back(std::move(next));
  const int newest = static_cast<int>(iterations_.size()) - 1;
  move_parameters(newest - 1, newest);
  run_step(newest);
}

/// Replaces the parameters in the memory of all copies, those before iteration `from` by those
/// before iteration `to`.
void ValueReference::move_parameters(int from, int to) {
  const ValueIteration& old = *iterations_[static_cast<std::size_t>(from)];
  const ValueIteration& now = *iterations_[static_cast<std::size_t>(to)];
  for (int copy = 0; copy < machine_->rank_count(); ++copy) {
    ValueMemory& memory = machine_->memory(copy);
    for (std::size_t root = 0; root < memory.buffer_count(); ++root) {
      for (ValuePiece& piece : memory.raw(static_cast<std::uint32_t>(root))) {
        const auto found = old.parameter_of.find(piece.symbol.number);
        if (found != old.parameter_of.end()) {
          piece.symbol.number = now.before[static_cast<std::size_t>(found->second)];
        }
      }
    }
  }
}

Number ValueReference::evaluation_loss(int k, int microbatches) {
  const std::uint64_t key =
      (static_cast<std::uint64_t>(k) << 32U) | static_cast<std::uint64_t>(microbatches);
  const auto known = evaluation_.find(key);
  if (known != evaluation_.end()) {
    return known->second;
  }
  iteration(k);
  ValueIteration& now = *iterations_[static_cast<std::size_t>(k)];
  const int newest = static_cast<int>(iterations_.size()) - 1;
  move_parameters(newest, k);
  Number sum = 0;
  Number weights = 0;
  for (std::size_t s = 0; s < plan_.sections.size(); ++s) {
    if (plan_.sections[s].kind != SectionKind::kEvaluate) {
      continue;
    }
    for (int m = 0; m < microbatches; ++m) {
      recorder_->begin(now, setting_.data);
      machine_->run(static_cast<int>(s), kEvaluationIteration, m);
      for (int d = 0; d < setting_.data; ++d) {
        const Number weight =
            setting_.by_tokens ? token_count_of_batch(kEvaluationIteration, d, m) : 1;
        sum = field::add(sum,
                         field::multiply(weight, recorder_->losses[static_cast<std::size_t>(d)]));
        weights = field::add(weights, weight);
      }
    }
  }
  move_parameters(k, newest);
  problem_ = recorder_->wrong;
  const Number loss = field::multiply(sum, field::inverse(weights));
  evaluation_.emplace(key, loss);
  return loss;
}

}  // namespace lockstep
