#include "executor/rank_memory.h"

#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace lockstep::exec {

RankMemory::RankMemory(const Plan& plan, int rank, Device& device)
    : buffers_(plan.buffers[static_cast<std::size_t>(plan.class_of_rank(rank))]),
      device_(device),
      memory_(buffers_.size(), nullptr),
      uses_(buffers_.size()) {
  for (int axis = 0; axis < kAxisCount; ++axis) {
    coordinate_[static_cast<std::size_t>(axis)] =
        plan.mesh.coordinate(rank, static_cast<Axis>(axis));
  }
  coordinate_[static_cast<std::size_t>(Axis::kAllData)] = plan.mesh.index(kDataAxes, rank);
}

void RankMemory::allocate(std::uint32_t buffer) {
  const Buffer& it = buffers_[buffer];
  LOCKSTEP_CHECK(memory_[buffer] == nullptr, "buffer is allocated twice");
  if (it.alias_of != kNoBuffer) {
    memory_[buffer] = memory_[it.alias_of] + it.alias_offset * size_of(it.dtype);
    return;
  }
  uses_[buffer].clear();
  memory_[buffer] = static_cast<std::byte*>(device_.allocate(it.category, it.storage, it.bytes()));
}

void RankMemory::free(std::uint32_t buffer) {
  LOCKSTEP_CHECK(memory_[buffer] != nullptr, "buffer is freed twice");
  std::byte* const memory = std::exchange(memory_[buffer], nullptr);
  if (buffers_[buffer].alias_of == kNoBuffer) {
    device_.free(memory, uses_[buffer]);
  }
}

void RankMemory::used_until(std::uint32_t buffer, Event event) {
  std::vector<Event>& uses = uses_[lender(buffer)];
  for (Event& use : uses) {
    if (use.stream == event.stream) {
      use = event;
      return;
    }
  }
  uses.push_back(event);
}

Operand RankMemory::operand(const View& view) const {
  const Buffer& it = buffers_[view.buffer];
  LOCKSTEP_CHECK(memory_[view.buffer] != nullptr, "operation uses a buffer that is not allocated");
  const std::int64_t first =
      view.offset + coordinate_[static_cast<std::size_t>(view.axis)] * view.stride;
  LOCKSTEP_CHECK(first >= 0 && first + view.elements <= it.elements,
                 "view reaches outside its buffer");
  return {memory_[view.buffer] + first * size_of(it.dtype),
          view.elements,
          it.dtype,
          it.category,
          it.parameter};
}

}  // namespace lockstep::exec
