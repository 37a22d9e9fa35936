// Task: what a stream runs. A function and a copy of what it needs, of fixed size, so that handing
// work to a stream never touches the heap.
//
//     device.enqueue(stream, make_task([=] { kernel(x, y, n); }));   // captures: plain data only
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

namespace lockstep::exec {

struct Task {
  static constexpr std::size_t kCapacity = 112;

  void (*run)(const void* payload) = nullptr;
  alignas(8) std::byte payload[kCapacity] = {};

  void operator()() const { run(payload); }
};

/// A task that calls a copy of `call`. What it captures has to be plain data that fits.
template <typename Call>
Task make_task(const Call& call) {
  static_assert(std::is_trivially_copyable_v<Call> && sizeof(Call) <= Task::kCapacity &&
                alignof(Call) <= 8);
  Task task;
  task.run = [](const void* payload) { (*static_cast<const Call*>(payload))(); };
  std::memcpy(task.payload, &call, sizeof(Call));
  return task;
}

}  // namespace lockstep::exec
