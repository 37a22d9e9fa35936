// The second algorithm for races: reachability between all pairs of operations, then all pairs of
// accesses, for every rank. Slow and plain; what the vector clocks of the plan check are held to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/plan.h"

namespace lockstep::test {

struct Access {
  std::uint32_t operation = 0;
  std::uint32_t life = 0;  ///< number of allocs of the buffer so far
  std::int64_t begin = 0;  ///< bytes
  std::int64_t end = 0;
  bool writes = false;
};

/// before[i] has bit j when operation j is surely done before operation i begins.
class Reachability {
 public:
  explicit Reachability(const Program& program) : words_(program.operations.size() / 64 + 1) {
    bits_.assign(program.operations.size() * words_, 0);
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const Operation& op = program.operations[i];
      if (is_memory(op)) {
        continue;
      }
      for (std::size_t j = 0; j < i; ++j) {
        const Operation& other = program.operations[j];
        // Messages of different pairs of ranks pass one another.
        const bool in_order = other.stream == op.stream && other.peer == op.peer &&
                              (op.peer == kNoPeer || other.kind == op.kind);
        if (!is_memory(other) && (in_order || other.has(kHostSync))) {
          add(i, j);
        }
      }
      for (const std::uint32_t on : program.dependencies_of(op)) {
        add(i, on);
      }
    }
  }

  bool before(std::size_t j, std::size_t i) const {
    return ((bits_[i * words_ + j / 64] >> (j % 64)) & 1U) != 0;
  }

 private:
  /// Alloc and free count when the host passes them.
  static bool is_memory(const Operation& op) {
    return op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree;
  }
  void add(std::size_t i, std::size_t j) {
    if (before(j, i)) {
      return;
    }
    bits_[i * words_ + j / 64] |= std::uint64_t{1} << (j % 64);
    for (std::size_t word = 0; word < words_; ++word) {
      bits_[i * words_ + word] |= bits_[j * words_ + word];
    }
  }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// What one rank touches, by the buffer that owns the memory.
inline std::vector<std::vector<Access>> accesses_of(const Plan& plan,
                                                    const Program& program,
                                                    const std::vector<Buffer>& buffers,
                                                    int rank) {
  std::vector<std::vector<Access>> result(buffers.size());
  std::vector<std::uint32_t> lives(buffers.size(), 0);
  const auto add = [&](std::uint32_t index, const View& view, bool writes) {
    const Buffer& buffer = buffers[view.buffer];
    const bool alias = buffer.alias_of != kNoBuffer;
    const std::uint32_t owner = alias ? buffer.alias_of : view.buffer;
    const std::int64_t begin = (alias ? buffer.alias_offset : 0) + view.offset +
                               plan.mesh.coordinate(rank, view.axis) * view.stride;
    const std::int64_t size = size_of(buffer.dtype);
    result[owner].push_back(
        {index, lives[owner], begin * size, (begin + view.elements) * size, writes});
  };
  for (std::uint32_t index = 0; index < program.operations.size(); ++index) {
    const Operation& op = program.operations[index];
    if (op.kind == OperationKind::kAlloc) {
      ++lives[op.buffer];
    }
    for (const View& view : program.inputs_of(op)) {
      add(index, view, false);
    }
    if (op.guard != kNoBuffer) {
      add(index, {op.guard, Axis::kNone, 0, buffers[op.guard].elements, 0}, false);
    }
    for (const View& view : program.outputs_of(op)) {
      add(index, view, true);
    }
  }
  return result;
}

/// Whether any rank of the class has a race in the section.
inline bool has_race(const Plan& plan, int section, int class_index) {
  const auto c = static_cast<std::size_t>(class_index);
  const Program& program = plan.sections[static_cast<std::size_t>(section)].programs[c];
  const Reachability reachability(program);
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    if (plan.class_of_rank(rank) != class_index) {
      continue;
    }
    for (const std::vector<Access>& list : accesses_of(plan, program, plan.buffers[c], rank)) {
      for (std::size_t second = 0; second < list.size(); ++second) {
        const Access& b = list[second];
        const bool races = std::any_of(list.begin(), list.begin() + second, [&](const Access& a) {
          return a.operation != b.operation && a.life == b.life && a.begin < b.end &&
                 b.begin < a.end && (a.writes || b.writes) &&
                 !reachability.before(a.operation, b.operation);
        });
        if (races) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace lockstep::test
