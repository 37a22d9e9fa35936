#include "executor/trial_run.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "executor/trainer.h"

namespace lockstep::exec {
namespace {

/// Tokens, labels and features from their place: no file, any vocabulary.
class TrialHost final : public Host {
 public:
  explicit TrialHost(const Scenario& scenario)
      : classes_(scenario.model.family == ModelFamily::kMlp ? scenario.model.widths.back()
                                                            : scenario.model.vocab),
        rate_(scenario.training.learning_rate) {}

  void load(const BatchRequest& request) override {
    const std::int64_t rows = request.replicas * request.samples * request.seq;
    if (request.labels != nullptr) {
      fill_tokens(*request.labels, rows, request.place);
    }
    if (request.inputs == nullptr) {
      return;
    }
    if (request.inputs->dtype == DType::kInt64) {
      return fill_tokens(*request.inputs, rows, request.place);
    }
    request.inputs->dtype == DType::kFp64 ? fill_features<double>(*request.inputs)
                                          : fill_features<float>(*request.inputs);
  }
  double learning_rate(std::int64_t) const override { return rate_; }
  void loss(const RunPlace&, double) override {}
  void shard(const Shard&) override {}
  void commit(const RunPlace&) override {}

 private:
  void fill_tokens(const Operand& to, std::int64_t rows, const RunPlace& place) const {
    constexpr std::int64_t kStride = 7919;  // a prime: neighbours are far apart
    auto* const tokens = to.as<std::int64_t>();
    for (std::int64_t i = 0; i < rows; ++i) {
      tokens[i] =
          (place.iteration + std::int64_t{31} * place.data_coordinate + i * i) * kStride % classes_;
    }
  }

  template <typename T>
  static void fill_features(const Operand& to) {
    for (std::int64_t i = 0; i < to.elements; ++i) {
      to.as<T>()[i] = static_cast<T>(i % 17) / T{16} - T{0.5};
    }
  }

  std::int64_t classes_;
  double rate_;
};

std::string text_of(const IssuedTransfer& it) {
  const bool collective = it.kind == OperationKind::kCollective;
  return fmt::format(
      "{}{} of {} {}{}",
      collective ? name_of(it.collective) : name_of(it.kind),
      it.reduction == Reduction::kNone ? "" : fmt::format(" ({})", name_of(it.reduction)),
      it.elements,
      name_of(it.dtype),
      it.peer >= 0 ? fmt::format(", peer {}", it.peer) : "");
}

void forget_transfers(const Job& job) {
  for (int rank = 0; rank < job.ranks(); ++rank) {
    for (const auto& communicator : job.communicators(rank)) {
      if (communicator != nullptr) {
        communicator->forget_issued();
      }
    }
  }
}

std::string transfer_difference(const Plan& plan, const Job& job, int section) {
  for (int rank = 0; rank < job.ranks(); ++rank) {
    const auto communicators = job.communicators(rank);
    for (std::size_t i = 0; i < communicators.size(); ++i) {
      const std::vector<IssuedTransfer> planned = planned_transfers(plan, rank, section, i);
      const std::string difference =
          first_difference(planned,
                           communicators[i] == nullptr ? std::span<const IssuedTransfer>{}
                                                       : communicators[i]->issued());
      if (!difference.empty()) {
        return fmt::format("rank {}, group {}: {}",
                           rank,
                           group_text(plan.mesh, plan.communicators[i]),
                           difference);
      }
    }
  }
  return "";
}

void apply(const MemoryEvent& event, CategoryBytes& bytes) {
  if (event.storage == Storage::kDevice) {
    bytes[static_cast<std::size_t>(event.category)] += event.freed ? -event.bytes : event.bytes;
  }
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

std::vector<IssuedTransfer> planned_transfers(const Plan& plan,
                                              int rank,
                                              int section,
                                              std::size_t communicator) {
  std::vector<IssuedTransfer> transfers;
  const auto program = static_cast<std::size_t>(plan.class_of_rank(rank));
  for (const Operation& op :
       plan.sections[static_cast<std::size_t>(section)].programs[program].operations) {
    if (op.communicator == communicator) {
      const bool collective = op.kind == OperationKind::kCollective;
      transfers.push_back({op.kind,
                           op.collective,
                           op.reduction,
                           op.dtype,
                           collective ? op.root : op.peer,
                           op.tag,
                           op.elements});
    }
  }
  return transfers;
}

std::string first_difference(std::span<const IssuedTransfer> planned,
                             std::span<const IssuedTransfer> issued) {
  for (std::size_t i = 0; i < std::min(planned.size(), issued.size()); ++i) {
    if (!(planned[i] == issued[i])) {
      return fmt::format(
          "transfer {}: planned {}, issued {}", i, text_of(planned[i]), text_of(issued[i]));
    }
  }
  return planned.size() == issued.size()
             ? ""
             : fmt::format("{} transfers planned, {} issued", planned.size(), issued.size());
}

CategoryBytes highest_lent(std::span<const MemoryEvent> events, std::size_t passed) {
  CategoryBytes bytes{};
  for (const MemoryEvent& event : events.first(passed)) {
    apply(event, bytes);
  }
  CategoryBytes highest = bytes;
  for (const MemoryEvent& event : events.subspan(passed)) {
    apply(event, bytes);
    if (total(bytes) > total(highest)) {
      highest = bytes;
    }
  }
  return highest;
}

TrialRun run_trial(const Scenario& scenario, const Plan& plan, const TrialOptions& options) {
  const std::string reason = unsupported_reason(scenario);
  if (!reason.empty()) {
    throw NotSupportedError("run", reason);
  }
  TrialHost host(scenario);
  Job job(plan, scenario.training, host, options.job);
  job.run(*plan.find(SectionKind::kInit), 0);
  const int first = static_cast<int>(plan.variant_of_iteration.size()) - 1 + options.warmup;
  TrialRun result;
  std::vector<std::size_t> passed(static_cast<std::size_t>(job.ranks()));
  double before = 0;
  for (int i = 0; i < first + options.steps && !(options.stop && options.stop()); ++i) {
    forget_transfers(job);
    for (int rank = 0; rank < job.ranks(); ++rank) {
      passed[static_cast<std::size_t>(rank)] = job.device(rank).memory().events().size();
    }
    before = i == first ? processor_seconds() : before;
    job.run(plan.step(i), i);
    if (i >= first) {
      result.steps.push_back(job.trace_step());
    }
  }
  if (result.steps.empty()) {
    return result;
  }
  result.processor_s = (processor_seconds() - before) / static_cast<double>(result.steps.size());
  const int section = result.steps.back().section;
  result.transfer_difference = transfer_difference(plan, job, section);
  for (int rank = 0; rank < job.ranks(); ++rank) {
    result.peaks.push_back(
        highest_lent(job.device(rank).memory().events(), passed[static_cast<std::size_t>(rank)]));
  }
  return result;
}

}  // namespace lockstep::exec
