#include "core/check/happens_before.h"

namespace lockstep {

HappensBefore::HappensBefore(const Program& program,
                             const std::vector<std::uint32_t>& never_launched)
    : queue_(program.operations.size()), clocks_(program.operations.size()) {
  QueueNumbering numbering;
  std::array<Clock, kQueueCount> queues{};
  Clock host{};
  auto skipped = never_launched.begin();
  for (std::uint32_t index = 0; index < clocks_.size(); ++index) {
    const Operation& op = program.operations[index];
    if (skipped != never_launched.end() && *skipped == index) {
      ++skipped;
      continue;
    }
    if (!takes_place(op)) {
      continue;
    }
    queue_[index] = numbering.of(op);
    Clock& queue = queues[queue_[index]];
    Clock& clock = clocks_[index];
    clock = queue;
    join(clock, host);
    for (const std::uint32_t on : program.dependencies_of(op)) {
      if (on < index) {
        join(clock, clocks_[on]);
      }
    }
    clock[queue_[index]] = index + 1;
    queue = clock;
    if (op.has(kHostSync)) {
      join(host, clock);
    }
  }
}

}  // namespace lockstep
