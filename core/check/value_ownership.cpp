// The value verifier on what is at rest: which ranks hold which elements of parameters in which
// version, gradients after the optimizer, the checkpoint.
#include <algorithm>

#include <fmt/format.h>

#include "core/check/value_verifier.h"

namespace lockstep {

using field::Number;

namespace {

/// Buffers in which parameters live from step to step.
bool keeps_parameters(const Buffer& buffer) {
  return buffer.lifetime == Lifetime::kPersistent &&
         (buffer.category == Category::kParameter || buffer.category == Category::kOptimizer) &&
         (buffer.parameter >= 0 || buffer.layout != kNoLayout);
}

/// Buffers of the model that are no parameters: batch norm's statistics and count of batches.
bool keeps_statistics(const Buffer& buffer) {
  return buffer.lifetime == Lifetime::kPersistent && buffer.category == Category::kParameter &&
         buffer.parameter < 0 && buffer.layout == kNoLayout;
}

}  // namespace

void ValueVerifier::note_parameters(const ValueMachine& machine) {
  ValueCoverage owned;
  for (int rank = 0; rank < machine.rank_count(); ++rank) {
    const std::vector<Buffer>& buffers =
        plan_.buffers[static_cast<std::size_t>(machine.class_of(rank))];
    for (std::uint32_t root = 0; root < buffers.size(); ++root) {
      if (keeps_parameters(buffers[root])) {
        note_home({rank, root, machine.memory(rank).raw(root)}, buffers[root], owned);
      } else if (keeps_statistics(buffers[root])) {
        check_first_statistics(machine, rank, root);
      }
    }
  }
  const std::string missing = owned.missing(graph());
  if (!missing.empty()) {
    general_problem(-1, "no rank owns some elements: " + missing);
  }
}

void ValueVerifier::check_first_statistics(const ValueMachine& machine,
                                           int rank,
                                           std::uint32_t root) {
  for (const ValuePiece& piece : machine.memory(rank).raw(root)) {
    if (piece.symbol.number != first_statistics_number(root)) {
      general_problem(
          rank, fmt::format("buffer {} does not begin with the statistics of its source", root));
      return;
    }
  }
}

void ValueVerifier::note_home(Home home, const Buffer& buffer, ValueCoverage& owned) {
  const ValueIteration& first = reference_.iteration(0);
  bool any = false;
  for (const ValuePiece& piece : home.contents) {
    const auto found = first.parameter_of.find(piece.symbol.number);
    if (found != first.parameter_of.end()) {
      owned.add(found->second, piece.symbol, piece.elements);
      any = true;
    } else if (buffer.category == Category::kParameter && piece.symbol.number != 0) {
      general_problem(
          home.rank,
          fmt::format("parameter buffer {} holds {}, not first values{}",
                      home.root,
                      version_text(piece.symbol.number),
                      buffer.parameter >= 0 ? " of " + graph().parameter_name(buffer.parameter)
                                            : std::string()));
    }
  }
  if (any) {
    homes_.push_back(std::move(home));
  }
}

void ValueVerifier::check_parameters(const ValueMachine& machine) {
  for (const Home& home : homes_) {
    if (enough()) {
      return;
    }
    check_home(machine, home);
  }
}

void ValueVerifier::check_home(const ValueMachine& machine, const Home& home) {
  const ValueIteration& first = reference_.iteration(0);
  const ValueIteration& now = expected();
  ValueSlab found = machine.memory(home.rank).raw(home.root);
  ValueSlab wanted = home.contents;
  for (ValuePiece& piece : wanted) {
    const auto parameter = first.parameter_of.find(piece.symbol.number);
    if (parameter != first.parameter_of.end()) {
      piece.symbol.number = now.after[static_cast<std::size_t>(parameter->second)];
    }
  }
  if (found == wanted) {
    return;
  }
  // Padding may hold anything; only what was a parameter must be one.
  for (const ValuePiece& piece : wanted) {
    if (piece.symbol.number == 0) {
      continue;
    }
    const bool there = std::any_of(found.begin(), found.end(), [&](const ValuePiece& other) {
      const std::int64_t skipped = (piece.offset - other.offset) / std::max(other.element_size, 1);
      return other.offset <= piece.offset && other.element_size == piece.element_size &&
             other.elements - skipped >= piece.elements &&
             other.symbol.after(skipped) == piece.symbol;
    });
    if (there) {
      continue;
    }
    std::string holds = "nothing";
    for (const ValuePiece& other : found) {
      if (other.offset + other.elements * other.element_size > piece.offset) {
        holds = version_text(other.symbol.number);
        break;
      }
    }
    general_problem(
        home.rank,
        fmt::format("buffer {} should hold {}{}, holds {}",
                    home.root,
                    version_text(piece.symbol.number),
                    piece.symbol.of > 1
                        ? fmt::format(" (tp slice {} of {})", piece.symbol.index, piece.symbol.of)
                        : std::string(),
                    holds));
    return;
  }
}

/// After the optimizer every gradient that is still there, owned or not, is the final one: what the
/// user of a replica finds in it.
void ValueVerifier::released(const ValueSite& site, const ValueSlab& gradient) {
  if (section_ != SectionKind::kStep || site.op->phase != Phase::kOptimizer) {
    return;
  }
  const ValueIteration& now = expected();
  const Number unclip = field::inverse(now.coefficient);
  for (const ValuePiece& piece : gradient) {
    const Number number = field::multiply(piece.symbol.number, unclip);
    if (number != 0 && now.gradient_of.count(number) == 0) {
      problem(site, "a gradient that nobody steps with is not the final one of any parameter");
      return;
    }
  }
}

void ValueVerifier::shard_written(const ValueSite& site, const ValueSlab& shard) {
  const ValueIteration& next = reference_.iteration(iteration_ + 1);
  for (const ValuePiece& piece : shard) {
    const auto found = next.parameter_of.find(piece.symbol.number);
    if (found != next.parameter_of.end()) {
      written_.add(found->second, piece.symbol, piece.elements);
      continue;
    }
    other_numbers_written_.emplace(site.rank, piece.symbol.number);
    if (version_text(piece.symbol.number) != "no version of any parameter" &&
        piece.symbol.number != 0) {
      problem(site, "writes " + version_text(piece.symbol.number));
    }
  }
}

/// An evaluation before may have made all ranks take over those of the first.
void ValueVerifier::check_saved_statistics() {
  const auto has_written = [this](int rank, Number number) {
    return other_numbers_written_.count({rank, number}) != 0;
  };
  for (const auto& [home, numbers] : statistics_) {
    const auto& [rank, buffer] = home;
    const std::vector<Number>& of_root = statistics_.at({statistics_root(rank), buffer});
    if (!has_written(rank, numbers.back()) && !has_written(rank, of_root.back())) {
      general_problem(
          rank, fmt::format("the checkpoint lacks the running statistics of buffer {}", buffer));
    }
  }
}

}  // namespace lockstep
