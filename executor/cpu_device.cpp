#include "executor/cpu_device.h"

#include <cstring>
#include <new>

#include <fmt/format.h>

#include "core/check.h"

namespace lockstep::exec {

/// Stands in front of what is lent, in the same block.
struct CpuDevice::Header {
  Header* next = nullptr;
  Header* previous = nullptr;
  std::int64_t bytes = 0;
  std::int64_t capacity = 0;
  Category category = Category::kTemporary;
  Storage storage = Storage::kDevice;
};

namespace {

constexpr std::int64_t kHeaderBytes = BlockCache::kAlignment;

}  // namespace

CpuDevice::~CpuDevice() {
  // What has not begun is passed over; all of it, before any worker ends, since streams wait for
  // each other.
  failed_.store(true);
  for (const auto& queue : queues_) {
    if (queue != nullptr) {
      queue->wait(queue->pushed());
    }
  }
  for (auto& queue : queues_) {
    queue.reset();
  }
  while (lent_ != nullptr) {
    Header* const header = lent_;
    lent_ = header->next;
    cache_.give_back({reinterpret_cast<std::byte*>(header), header->capacity, {}});
  }
}

// ---- memory ------------------------------------------------------------------------------------

void* CpuDevice::allocate(Category category, Storage storage, std::int64_t bytes) {
  static_assert(sizeof(Header) <= kHeaderBytes);
  LOCKSTEP_CHECK(bytes >= 0, fmt::format("{} bytes of {}", bytes, name_of(category)));
  if (options_.limit_bytes >= 0 && memory_.current() + bytes > options_.limit_bytes) {
    out_of_memory(category, bytes);
  }
  const BlockCache::Block block =
      cache_.take(bytes + kHeaderBytes, [this](Event event) { return reached(event); });
  if (block.memory == nullptr) {
    out_of_memory(category, bytes);
  }
  Header* const header = new (block.memory) Header;
  header->bytes = bytes;
  header->capacity = block.capacity;
  header->category = category;
  header->storage = storage;
  header->next = lent_;
  if (lent_ != nullptr) {
    lent_->previous = header;
  }
  lent_ = header;
  memory_.add(category, storage, bytes);
  std::byte* const memory = block.memory + kHeaderBytes;
  if (options_.poison) {
    std::memset(memory, 0xff, static_cast<std::size_t>(bytes));
  }
  return memory;
}

void CpuDevice::free(void* memory, std::span<const Event> uses) {
  auto* const start = static_cast<std::byte*>(memory) - kHeaderBytes;
  Header* const header = reinterpret_cast<Header*>(start);
  (header->previous != nullptr ? header->previous->next : lent_) = header->next;
  if (header->next != nullptr) {
    header->next->previous = header->previous;
  }
  memory_.remove(header->category, header->storage, header->bytes);
  BlockCache::Block block{start, header->capacity, {}};
  for (const Event& event : uses) {
    if (!reached(event)) {
      LOCKSTEP_CHECK(block.uses.count < kMaximumStreams, "more uses than streams");
      block.uses.event[block.uses.count++] = event;
    }
  }
  cache_.give_back(block);
}

void CpuDevice::trim() {
  cache_.trim([this](Event event) { return reached(event); });
}

void CpuDevice::out_of_memory(Category category, std::int64_t bytes) const {
  throw OutOfMemoryError(
      "device",
      fmt::format("no room for {} bytes of {}: {} bytes are lent, limit {} ({})",
                  bytes,
                  name_of(category),
                  memory_.current(),
                  options_.limit_bytes < 0 ? "of the machine"
                                           : fmt::format("{} bytes", options_.limit_bytes),
                  memory_.text()));
}

// ---- streams -----------------------------------------------------------------------------------

StreamQueue& CpuDevice::queue(StreamId stream) {
  LOCKSTEP_CHECK(stream < kMaximumStreams, fmt::format("stream {}", stream));
  auto& queue = queues_[stream];
  if (queue == nullptr) {
    queue = std::make_unique<StreamQueue>(&CpuDevice::run_task, this);
  }
  return *queue;
}

void CpuDevice::run_task(void* device, const Task& task) noexcept {
  auto& self = *static_cast<CpuDevice*>(device);
  if (self.failed_.load()) {
    return;
  }
  try {
    task();
  } catch (...) {
    self.fail(std::current_exception());
  }
}

void CpuDevice::fail(const std::exception_ptr& error) noexcept {
  {
    const std::lock_guard lock(failure_mutex_);
    if (failure_ != nullptr) {
      return;
    }
    failure_ = error;
  }
  failed_.store(true);
  if (!act_) {
    return;
  }
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    act_(exception.what());
  } catch (...) {
    act_("an exception that is no std::exception");
  }
}

void CpuDevice::rethrow() {
  if (failed_.load()) {
    const std::lock_guard lock(failure_mutex_);
    std::rethrow_exception(failure_);
  }
}

void CpuDevice::enqueue(StreamId stream, const Task& task) {
  if (is_inline(stream)) {
    rethrow();
    run_task(this, task);
    rethrow();
  } else {
    queue(stream).push(task);
  }
}

void CpuDevice::copy(StreamId stream, void* to, const void* from, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  enqueue(stream, make_task([to, from, size] { std::memmove(to, from, size); }));
}

Event CpuDevice::record(StreamId stream) {
  return is_inline(stream) ? Event{stream, 0} : Event{stream, queue(stream).pushed()};
}

void CpuDevice::wait(StreamId stream, Event event) {
  if (stream == event.stream || reached(event)) {
    return;
  }
  if (is_inline(stream)) {
    synchronize(event);
    return;
  }
  StreamQueue* const other = &queue(event.stream);
  const std::uint64_t position = event.position;
  queue(stream).push(make_task([other, position] { other->wait(position); }));
}

bool CpuDevice::reached(Event event) const {
  return event.position == 0 || queues_[event.stream]->reached(event.position);
}

void CpuDevice::synchronize(Event event) {
  if (event.position != 0) {
    queue(event.stream).wait(event.position);
  }
  rethrow();
}

void CpuDevice::synchronize() {
  for (const auto& queue : queues_) {
    if (queue != nullptr) {
      queue->wait(queue->pushed());
    }
  }
  rethrow();
}

}  // namespace lockstep::exec
