// CpuDevice: memory and threads of this machine as a Device.
//
// Inline streams (compute, host) run their tasks on the host thread, at once: one thread per rank
// computes, and waiting for another stream is a wait of that thread. Every other stream has a
// worker thread. Memory is kept for reuse (BlockCache), the account counts exact bytes.
#pragma once

#include <array>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>

#include "executor/block_cache.h"
#include "executor/device.h"
#include "executor/stream_queue.h"

namespace lockstep::exec {

struct CpuDeviceOptions {
  std::int64_t limit_bytes = -1;  ///< of all that is lent together; -1 = the machine's
  bool poison = false;            ///< fill what is lent with NaN (all bits one)
  /// Bit i: stream i runs on the host thread.
  std::uint32_t inline_streams =
      (1U << stream_id(Stream::kCompute)) | (1U << stream_id(Stream::kHost));
};

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const CpuDeviceOptions& options = {}) : options_(options) {}
  /// Streams end after the tasks that they are running. What those use must outlive the device;
  /// memory that was lent and never freed is released here.
  ~CpuDevice() override;

  void* allocate(Category category, Storage storage, std::int64_t bytes) override;
  void free(void* memory, std::span<const Event> uses) override;
  void enqueue(StreamId stream, const Task& task) override;
  void copy(StreamId stream, void* to, const void* from, std::int64_t bytes) override;
  Event record(StreamId stream) override;
  void wait(StreamId stream, Event event) override;
  bool reached(Event event) const override;
  void synchronize(Event event) override;
  void synchronize() override;
  void on_failure(std::function<void(const char* what)> act) override { act_ = std::move(act); }

  /// Gives cached memory that nothing uses back to the machine.
  void trim();

 private:
  struct Header;

  bool is_inline(StreamId stream) const { return (options_.inline_streams >> stream & 1U) != 0; }
  StreamQueue& queue(StreamId stream);
  static void run_task(void* device, const Task& task) noexcept;
  void fail(const std::exception_ptr& error) noexcept;
  void rethrow();
  [[noreturn]] void out_of_memory(Category category, std::int64_t bytes) const;

  CpuDeviceOptions options_;
  BlockCache cache_;
  Header* lent_ = nullptr;  ///< list of what is lent
  std::function<void(const char* what)> act_;
  std::atomic<bool> failed_{false};
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  /// Last, so that workers end before what they use.
  std::array<std::unique_ptr<StreamQueue>, kMaximumStreams> queues_;
};

}  // namespace lockstep::exec
