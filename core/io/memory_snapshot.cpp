#include "core/io/memory_snapshot.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "core/check.h"
#include "core/io/export_spans.h"
#include "core/io/pickle_writer.h"
#include "core/memory_timeline.h"
#include "core/names.h"
#include "core/plan_text.h"
#include "core/trace_index.h"

namespace lockstep {
namespace {

/// Where PyTorch's caching allocator begins to round (c10/cuda/CUDACachingAllocator:
/// kMinBlockSize).
constexpr std::int64_t kBlock = 512;
constexpr std::int64_t kFirstAddress = std::int64_t{1} << 32;
constexpr std::size_t kLongestText = 160;

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

/// First fit in a segment that grows at its end.
class AddressSpace {
 public:
  std::int64_t take(std::int64_t size) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second >= size) {
        const std::int64_t address = hole->first;
        const std::int64_t rest = hole->second - size;
        holes_.erase(hole);
        if (rest > 0) {
          holes_.emplace(address + size, rest);
        }
        return address;
      }
    }
    const std::int64_t address = end_;
    end_ += size;
    return address;
  }

  void give(std::int64_t address, std::int64_t size) {
    auto [it, fresh] = holes_.emplace(address, size);
    LOCKSTEP_CHECK(fresh, fmt::format("address {} is free already", address));
    const auto next = std::next(it);
    if (next != holes_.end() && address + size == next->first) {
      it->second += next->second;
      holes_.erase(next);
    }
    if (it != holes_.begin()) {
      const auto before = std::prev(it);
      if (before->first + before->second == it->first) {
        before->second += it->second;
        holes_.erase(it);
      }
    }
  }

  std::int64_t size() const { return end_ - kFirstAddress; }
  const std::map<std::int64_t, std::int64_t>& holes() const { return holes_; }

 private:
  std::int64_t end_ = kFirstAddress;
  std::map<std::int64_t, std::int64_t> holes_;  ///< size by address
};

struct Event {
  bool allocates = true;
  std::int64_t address = 0;
  std::int64_t bytes = 0;
  Nanoseconds time = 0;
  Category category = Category::kTemporary;
  std::string text;  ///< what allocates, for its frame
  std::uint32_t operation = 0;
};

struct Block {
  std::int64_t address = 0;
  Event made;
};

/// A device of the snapshot: what happened, and what is left.
class Device {
 public:
  Device(const Plan& plan, const Trace& trace, int rank)
      : plan_(plan),
        class_(plan.class_of_rank(rank)),
        buffers_(plan.buffers[static_cast<std::size_t>(class_)]) {
    const TraceStep& first = trace.steps.front();
    for (int section = 0; section < first.section; ++section) {
      const SectionKind kind = plan.sections[static_cast<std::size_t>(section)].kind;
      if (kind == SectionKind::kInit || kind == SectionKind::kStep) {
        hold(section);
      }
    }
    for (const auto& [buffer, event] : held_) {
      allocate(buffer, event, first.begin);
    }
    for (const TraceStep& step : trace.steps) {
      add_step(step, rank);
    }
  }

  const std::vector<Event>& events() const { return events_; }
  const std::map<std::uint32_t, Block>& blocks() const { return blocks_; }
  const AddressSpace& space() const { return space_; }

 private:
  const std::vector<Operation>& operations(int section) const {
    return plan_.sections[static_cast<std::size_t>(section)]
        .programs[static_cast<std::size_t>(class_)]
        .operations;
  }

  std::int64_t device_bytes(const Operation& op) const {
    const Buffer& buffer = buffers_[op.buffer];
    return buffer.storage == Storage::kDevice ? buffer.bytes() : 0;
  }

  /// Of what happened before the trace only what is left counts.
  void hold(int section) {
    const std::vector<Operation>& program = operations(section);
    for (std::uint32_t i = 0; i < program.size(); ++i) {
      if (program[i].kind == OperationKind::kAlloc && device_bytes(program[i]) > 0) {
        held_[program[i].buffer] = event_of(section, i);
      } else if (program[i].kind == OperationKind::kFree) {
        held_.erase(program[i].buffer);
      }
    }
  }

  Event event_of(int section, std::uint32_t operation) const {
    const Operation& op = operations(section)[operation];
    Event event;
    event.bytes = device_bytes(op);
    event.category = buffers_[op.buffer].category;
    event.operation = operation;
    event.text = printable(section_text(plan_, section) + ": " + operation_text(plan_, class_, op),
                           kLongestText);
    return event;
  }

  void add_step(const TraceStep& step, int rank) {
    const TraceIndex index(plan_, step);
    const int track = step.track_of_rank[static_cast<std::size_t>(rank)];
    for (const MemorySample& sample : memory_timeline(index, track)) {
      if (sample.operation == kNoSpan) {
        continue;
      }
      const Operation& op = operations(step.section)[sample.operation];
      if (op.kind == OperationKind::kAlloc) {
        allocate(op.buffer, event_of(step.section, sample.operation), sample.time);
      } else {
        release(op.buffer, sample);
      }
    }
  }

  void allocate(std::uint32_t buffer, Event event, Nanoseconds time) {
    event.time = time;
    event.address = space_.take(rounded(event.bytes));
    blocks_[buffer] = {event.address, event};
    events_.push_back(std::move(event));
  }

  void release(std::uint32_t buffer, const MemorySample& sample) {
    const auto found = blocks_.find(buffer);
    LOCKSTEP_CHECK(found != blocks_.end(), fmt::format("buffer {} is not allocated", buffer));
    Event event = found->second.made;
    event.allocates = false;
    event.time = sample.time;
    space_.give(event.address, rounded(event.bytes));
    blocks_.erase(found);
    events_.push_back(std::move(event));
  }

  const Plan& plan_;
  int class_;
  const std::vector<Buffer>& buffers_;
  AddressSpace space_;
  std::map<std::uint32_t, Event> held_;    ///< by buffer: before the first step
  std::map<std::uint32_t, Block> blocks_;  ///< by buffer: now
  std::vector<Event> events_;
};

void write_frames(PickleWriter& pickle, const Event& event) {
  pickle.text("frames");
  pickle.begin_list();
  pickle.begin_dictionary();
  pickle.entry("filename", "plan");
  pickle.entry("line", event.operation);
  pickle.entry("name", event.text);
  pickle.end_dictionary();
  pickle.end_list();
}

void write_block(PickleWriter& pickle, std::int64_t size, const Event* made) {
  pickle.begin_dictionary();
  pickle.entry("size", size);
  pickle.entry("requested_size", made == nullptr ? 0 : made->bytes);
  pickle.entry("state", made == nullptr ? "inactive" : "active_allocated");
  if (made != nullptr) {
    write_frames(pickle, *made);
  } else {
    pickle.text("frames");
    pickle.begin_list();
    pickle.end_list();
  }
  pickle.end_dictionary();
}

/// Blocks lie one behind the other from the segment's address on; holes are blocks too.
void write_segment(PickleWriter& pickle, const Device& device, int number) {
  struct Piece {
    std::int64_t size = 0;
    const Event* made = nullptr;
  };
  std::map<std::int64_t, Piece> pieces;
  std::int64_t allocated = 0;
  for (const auto& [address, size] : device.space().holes()) {
    pieces[address] = {size, nullptr};
  }
  for (const auto& [buffer, block] : device.blocks()) {
    pieces[block.address] = {rounded(block.made.bytes), &block.made};
    allocated += rounded(block.made.bytes);
  }
  pickle.begin_dictionary();
  pickle.entry("device", number);
  pickle.entry("address", kFirstAddress);
  pickle.entry("total_size", device.space().size());
  pickle.entry("stream", 0);
  pickle.entry("allocated_size", allocated);
  pickle.entry("active_size", allocated);
  pickle.entry("segment_type", "large");
  pickle.text("blocks");
  pickle.begin_list();
  for (const auto& [address, piece] : pieces) {
    write_block(pickle, piece.size, piece.made);
  }
  pickle.end_list();
  pickle.end_dictionary();
}

void write_event(PickleWriter& pickle, std::string_view action, const Event& event) {
  pickle.begin_dictionary();
  pickle.entry("action", action);
  pickle.entry("addr", event.address);
  pickle.entry("size", event.bytes);
  pickle.entry("stream", 0);
  pickle.entry("time_us", event.time / 1000);
  pickle.entry("category", action == "segment_alloc" ? "unknown" : name_of(event.category));
  write_frames(pickle, event);
  pickle.end_dictionary();
}

void write_device_trace(PickleWriter& pickle, const Device& device) {
  pickle.begin_list();
  // The viewer fails on categories unless some event's is "unknown" (MemoryViz.js,
  // annotate_snapshot); the segment's is.
  Event segment;
  segment.address = kFirstAddress;
  segment.bytes = device.space().size();
  segment.time = device.events().empty() ? 0 : device.events().front().time;
  segment.text = "the segment";
  write_event(pickle, "segment_alloc", segment);
  for (const Event& event : device.events()) {
    if (event.allocates) {
      write_event(pickle, "alloc", event);
    } else {
      write_event(pickle, "free_requested", event);
      write_event(pickle, "free_completed", event);
    }
  }
  pickle.end_list();
}

}  // namespace

void write_memory_snapshot(const TextSink& bytes,
                           const Plan& plan,
                           const Trace& trace,
                           const std::vector<int>& ranks) {
  std::vector<Device> devices;
  for (const int rank : export_ranks(plan, trace, ranks)) {
    devices.emplace_back(plan, trace, rank);
  }
  PickleWriter pickle(bytes);
  pickle.begin_dictionary();
  pickle.text("segments");
  pickle.begin_list();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    write_segment(pickle, devices[i], static_cast<int>(i));
  }
  pickle.end_list();
  pickle.text("device_traces");
  pickle.begin_list();
  for (const Device& device : devices) {
    write_device_trace(pickle, device);
  }
  pickle.end_list();
  pickle.end_dictionary();
  pickle.finish();
}

}  // namespace lockstep
