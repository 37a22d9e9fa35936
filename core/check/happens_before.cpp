#include "core/check/happens_before.h"

namespace lockstep {

HappensBefore::HappensBefore(const Program& program,
                             const std::vector<std::uint32_t>& never_launched)
    : program_(program), clocks_(program.operations.size()) {
  std::array<Clock, kStreamCount> streams{};
  Clock host{};
  auto skipped = never_launched.begin();
  for (std::uint32_t index = 0; index < clocks_.size(); ++index) {
    const Operation& op = program.operations[index];
    if (skipped != never_launched.end() && *skipped == index) {
      ++skipped;
      continue;
    }
    if (op.kind == OperationKind::kAlloc) {
      continue;
    }
    Clock& stream = streams[stream_of(index)];
    Clock& clock = clocks_[index];
    clock = stream;
    join(clock, host);
    for (const std::uint32_t on : program.dependencies_of(op)) {
      if (on < index) {
        join(clock, clocks_[on]);
      }
    }
    clock[stream_of(index)] = index + 1;
    stream = clock;
    if (op.has(kHostSync)) {
      join(host, clock);
    }
  }
}

}  // namespace lockstep
