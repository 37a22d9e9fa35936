#include "tests/support/mutants.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace lockstep::test {
namespace {

Program& program_of(Plan& plan, int class_index, int section) {
  return plan.sections[static_cast<std::size_t>(section)]
      .programs[static_cast<std::size_t>(class_index)];
}

/// Appends an operation of `from` with its operands and these dependencies.
void append(Program& to,
            const Program& from,
            Operation op,
            const std::vector<std::uint32_t>& dependencies) {
  const auto operands = static_cast<std::uint32_t>(op.inputs + op.outputs);
  const View* views = from.views.data() + op.first_view;
  op.first_view = static_cast<std::uint32_t>(to.views.size());
  op.first_dependency = static_cast<std::uint32_t>(to.dependencies.size());
  op.dependencies = static_cast<std::uint16_t>(dependencies.size());
  to.views.insert(to.views.end(), views, views + operands);
  to.dependencies.insert(to.dependencies.end(), dependencies.begin(), dependencies.end());
  to.operations.push_back(op);
}

}  // namespace

Plan remove_operation(const Plan& plan, int class_index, int section, std::uint32_t operation) {
  Plan mutant = plan;
  Program& target = program_of(mutant, class_index, section);
  const Program original = std::move(target);
  target = {};
  std::vector<std::uint32_t> dependencies;
  for (std::uint32_t i = 0; i < original.operations.size(); ++i) {
    if (i == operation) {
      continue;
    }
    dependencies.clear();
    const auto depend = [&](std::uint32_t on) {
      // Indices after the removed one move down; markers beyond the program stay.
      const bool moves = on > operation && on < original.operations.size();
      dependencies.push_back(moves ? on - 1 : on);
    };
    for (const std::uint32_t on : original.dependencies_of(original.operations[i])) {
      if (on != operation) {
        depend(on);
        continue;
      }
      for (const std::uint32_t before : original.dependencies_of(original.operations[operation])) {
        depend(before);
      }
    }
    std::sort(dependencies.begin(), dependencies.end());
    dependencies.erase(std::unique(dependencies.begin(), dependencies.end()), dependencies.end());
    append(target, original, original.operations[i], dependencies);
  }
  return mutant;
}

Plan duplicate_operation(const Plan& plan, int class_index, int section, std::uint32_t operation) {
  Plan mutant = plan;
  Program& target = program_of(mutant, class_index, section);
  const Program original = std::move(target);
  target = {};
  std::vector<std::uint32_t> dependencies;
  for (std::uint32_t i = 0; i < original.operations.size(); ++i) {
    dependencies.clear();
    for (const std::uint32_t on : original.dependencies_of(original.operations[i])) {
      const bool moves = on >= operation && on < original.operations.size();
      dependencies.push_back(moves ? on + 1 : on);
    }
    if (i == operation) {
      append(target, original, original.operations[i], dependencies);
      dependencies.assign(1, operation);
    }
    append(target, original, original.operations[i], dependencies);
  }
  return mutant;
}

Plan reorder_operations(const Plan& plan,
                        int class_index,
                        int section,
                        const std::vector<std::uint32_t>& order) {
  Plan mutant = plan;
  Program& target = program_of(mutant, class_index, section);
  const Program original = std::move(target);
  target = {};
  std::vector<std::uint32_t> place(original.operations.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    place[order[i]] = static_cast<std::uint32_t>(i);
  }
  std::vector<std::uint32_t> dependencies;
  for (const std::uint32_t index : order) {
    dependencies.clear();
    for (const std::uint32_t on : original.dependencies_of(original.operations[index])) {
      if (on < place.size() && place[on] < place[index]) {
        dependencies.push_back(place[on]);
      }
    }
    std::sort(dependencies.begin(), dependencies.end());
    append(target, original, original.operations[index], dependencies);
  }
  return mutant;
}

Plan insert_operation(
    const Plan& plan, int class_index, int section, std::uint32_t at, const Operation& operation) {
  Plan longer = plan;
  Program& program = program_of(longer, class_index, section);
  const auto last = static_cast<std::uint32_t>(program.operations.size());
  program.operations.push_back(operation);
  program.operations.back().first_view = static_cast<std::uint32_t>(program.views.size());
  program.operations.back().first_dependency =
      static_cast<std::uint32_t>(program.dependencies.size());
  std::vector<std::uint32_t> order(last);
  std::iota(order.begin(), order.end(), 0U);
  order.insert(order.begin() + at, last);
  return reorder_operations(longer, class_index, section, order);
}

bool is_bookkeeping(const Operation& op) {
  switch (op.kind) {
    case OperationKind::kCollective:
    case OperationKind::kSend:
    case OperationKind::kRecv:
      return true;
    case OperationKind::kCompute:
      return op.work == Work::kScale || op.work == Work::kAdd || op.has(kAccumulate) ||
             (op.work == Work::kPack && op.scalar != kNoScalar);
    default:
      return false;
  }
}

}  // namespace lockstep::test
