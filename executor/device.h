// Device: one rank's memory and streams. The interpreter asks it for memory by category and puts
// tasks on in-order streams; it knows no plan, so its account of memory can be held against one.
//
// A stream is a number (the plan's Stream). An event is a place in a stream: no object, nothing to
// free. One host thread uses a device. What a task of a stream throws reaches that thread at its
// next synchronize(); until then every later task of the device is passed over.
//
//     void* x = device.allocate(Category::kActivation, Storage::kDevice, bytes);
//     device.enqueue(compute, make_task([=] { fill(x); }));
//     device.wait(communication, device.record(compute));   // what follows there needs x
//     device.free(x, {});                                   // counted now, used again when ready
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/plan.h"
#include "executor/memory_account.h"
#include "executor/task.h"

namespace lockstep::exec {

using StreamId = std::uint8_t;
inline constexpr int kMaximumStreams = 16;

inline constexpr StreamId stream_id(Stream stream) {
  return static_cast<StreamId>(stream);
}

/// The end of the `position`-th task of `stream`. Position 0 has always been reached.
struct Event {
  StreamId stream = 0;
  std::uint64_t position = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  /// Memory of at least `bytes` bytes, 64-byte aligned, of any content. Throws OutOfMemoryError.
  virtual void* allocate(Category category, Storage storage, std::int64_t bytes) = 0;
  /// Counts at once; the memory is not lent again before all of `uses` are reached.
  virtual void free(void* memory, std::span<const Event> uses) = 0;
  const MemoryAccount& memory() const { return memory_; }
  MemoryAccount& memory() { return memory_; }

  /// Appends a task that runs on the host (a device with a queue of its own runs it at once: it
  /// launches). May block while the stream is full.
  virtual void enqueue(StreamId stream, const Task& task) = 0;
  virtual void copy(StreamId stream, void* to, const void* from, std::int64_t bytes) = 0;
  /// What has been put on the stream so far.
  virtual Event record(StreamId stream) = 0;
  /// What is put on `stream` from now on begins after `event`.
  virtual void wait(StreamId stream, Event event) = 0;
  virtual bool reached(Event event) const = 0;
  /// Blocks the host until the event, or until everything, has been reached; throws what a task of
  /// this device threw first.
  virtual void synchronize(Event event) = 0;
  virtual void synchronize() = 0;
  /// `act` is called once, on the thread of the first task that throws, before other streams go on:
  /// the place to abort communicators, whose members would wait for this rank. Set it before the
  /// first task.
  virtual void on_failure(std::function<void(const char* what)> act) = 0;

 protected:
  MemoryAccount memory_;
};

}  // namespace lockstep::exec
