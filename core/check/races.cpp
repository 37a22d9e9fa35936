// Rule "race": two accesses to the same memory, at least one of them a write, happen in a known
// order (happens_before.h). Inputs and guards are reads, outputs are writes. An alloc begins a new
// life: interpreters hand out memory only when its former users are done. Sections follow each
// other completely.
//
// A buffer is a row of segments; each remembers its last write and the reads since, one per queue.
// That is enough: what came before the last write is ordered before it or was reported.
//
// Where views depend on coordinates that ranks of the class do not share, the first, the last and a
// middle rank are looked at.

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/check/happens_before.h"
#include "core/check/plan_rules.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

constexpr std::uint32_t kNobody = 0xffffffffU;

/// Bytes [begin, next segment's begin) of a buffer.
struct Segment {
  std::int64_t begin = 0;
  std::uint32_t writer = kNobody;
  std::array<std::uint32_t, kQueueCount> readers{};

  explicit Segment(std::int64_t at) : begin(at) { readers.fill(kNobody); }
};

/// The segments of one buffer, ascending; the first begins at 0, the last ends with the buffer.
class SegmentMap {
 public:
  void clear() { segments_.assign(1, Segment(0)); }

  /// Segments that make up exactly [begin, end).
  std::span<Segment> cut(std::int64_t begin, std::int64_t end) {
    const std::size_t first = split(begin);
    const std::size_t last = split(end);
    return {segments_.data() + first, last - first};
  }

  /// Replaces [begin, end), which was cut before, by one segment.
  void write(std::int64_t begin, std::int64_t end, std::uint32_t writer) {
    const std::size_t first = split(begin);
    const std::size_t last = split(end);
    Segment& segment = segments_[first];
    segment = Segment(begin);
    segment.writer = writer;
    segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                    segments_.begin() + static_cast<std::ptrdiff_t>(last));
  }

 private:
  /// Index of the segment that begins at `at`, made if need be. At the end of the buffer this makes
  /// an empty segment, which is harmless.
  std::size_t split(std::int64_t at) {
    const auto next = std::lower_bound(
        segments_.begin(), segments_.end(), at, [](const Segment& segment, std::int64_t b) {
          return segment.begin < b;
        });
    const auto index = static_cast<std::size_t>(next - segments_.begin());
    if (next != segments_.end() && next->begin == at) {
      return index;
    }
    Segment copy = *(next - 1);
    copy.begin = at;
    segments_.insert(next, copy);
    return index;
  }

  std::vector<Segment> segments_{Segment(0)};
};

class RaceCheck {
 public:
  RaceCheck(const CheckContext& context, int section, int class_index)
      : context_(context),
        section_(section),
        class_(class_index),
        program_(context.program(section, class_index)),
        buffers_(context.buffers(class_index)),
        order_(program_,
               context.never_launched[static_cast<std::size_t>(section)]
                                     [static_cast<std::size_t>(class_index)]) {}

  void run() {
    looked_at_.assign(buffers_.size(), 1);
    pass(context_.coordinates[static_cast<std::size_t>(class_)], 0);
    if (find_strided()) {
      pass(context_.coordinates[static_cast<std::size_t>(class_)], 1);
      pass(context_.coordinates[static_cast<std::size_t>(class_)], 2);
    }
  }

 private:
  struct Range {
    std::uint32_t buffer = 0;  ///< that owns the memory
    std::int64_t begin = 0;    ///< bytes
    std::int64_t end = 0;
  };

  /// Narrows `looked_at_` to buffers with views that depend on a coordinate ranks do not share.
  bool find_strided() {
    looked_at_.assign(buffers_.size(), 0);
    bool any = false;
    for (const View& view : program_.views) {
      if (view.axis != Axis::kNone && view.stride != 0 && is_free(view.axis)) {
        looked_at_[lender_of(view.buffer)] = 1;
        any = true;
      }
    }
    return any;
  }

  bool is_free(Axis axis) const {
    return context_.coordinates[static_cast<std::size_t>(class_)][static_cast<std::size_t>(axis)] ==
           kFreeCoordinate;
  }

  /// `which`: 0 takes coordinate 0 where ranks differ, 1 the last one, 2 the middle one.
  void pass(ClassCoordinates coordinates, std::size_t which) {
    for (int number = 0; number < kAxisCount; ++number) {
      const CoordinateRange range =
          coordinate_range(context_.plan, coordinates, static_cast<Axis>(number));
      const int middle = (range.first + range.last + 1) / 2;
      coordinates[static_cast<std::size_t>(number)] =
          std::array<int, 3>{range.first, range.last, middle}[which];
    }
    // All data axes read as one follow from their parts, which now are one coordinate each.
    coordinates[static_cast<std::size_t>(Axis::kAllData)] =
        coordinate_range(context_.plan, coordinates, Axis::kAllData).first;
    coordinates_ = coordinates;
    memory_.assign(buffers_.size(), SegmentMap());
    for (std::uint32_t index = 0; index < program_.operations.size(); ++index) {
      if (context_.launches(section_, class_, index)) {
        visit(index);
      }
    }
  }

  void visit(std::uint32_t index) {
    const Operation& op = program_.operations[index];
    if (!takes_place(op)) {
      const bool lives_on = buffers_[op.buffer].alias_of != kNoBuffer;
      if (op.kind == OperationKind::kAlloc && !lives_on) {
        memory_[op.buffer].clear();
      }
      return;
    }
    for (const View& view : program_.inputs_of(op)) {
      read(index, range_of(view));
    }
    if (op.guard != kNoBuffer) {
      read(index, range_of({op.guard, Axis::kNone, 0, buffers_[op.guard].elements, 0}));
    }
    for (const View& view : program_.outputs_of(op)) {
      write(index, range_of(view));
    }
  }

  void read(std::uint32_t index, const Range& range) {
    if (looked_at_[range.buffer] == 0 || range.begin >= range.end) {
      return;
    }
    for (Segment& segment : memory_[range.buffer].cut(range.begin, range.end)) {
      check(segment.writer, index, range.buffer);
      segment.readers[order_.queue(index)] = index;
    }
  }

  void write(std::uint32_t index, const Range& range) {
    if (looked_at_[range.buffer] == 0 || range.begin >= range.end) {
      return;
    }
    SegmentMap& segments = memory_[range.buffer];
    for (const Segment& segment : segments.cut(range.begin, range.end)) {
      check(segment.writer, index, range.buffer);
      for (const std::uint32_t reader : segment.readers) {
        check(reader, index, range.buffer);
      }
    }
    segments.write(range.begin, range.end, index);
  }

  void check(std::uint32_t before, std::uint32_t after, std::uint32_t buffer) const {
    if (before == kNobody || order_.ordered(before, after)) {
      return;
    }
    const Operation& first = program_.operations[before];
    context_.report(
        PlanRule::kRace,
        section_,
        {class_, after},
        fmt::format(
            "on stream {}, does not wait for #{} {} on stream {}; both use buffer {} ({} {} "
            "{})",
            name_of(program_.operations[after].stream),
            before,
            operation_text(context_.plan, class_, first),
            name_of(first.stream),
            buffer,
            name_of(buffers_[buffer].category),
            buffers_[buffer].elements,
            name_of(buffers_[buffer].dtype)));
  }

  std::uint32_t lender_of(std::uint32_t id) const {
    return buffers_[id].alias_of == kNoBuffer ? id : buffers_[id].alias_of;
  }

  Range range_of(const View& view) const {
    const Buffer& buffer = buffers_[view.buffer];
    const std::int64_t coordinate =
        view.axis == Axis::kNone ? 0 : coordinates_[static_cast<std::size_t>(view.axis)];
    const std::int64_t size = size_of(buffer.dtype);
    const std::int64_t lent = buffer.alias_of == kNoBuffer ? 0 : buffer.alias_offset * size;
    const std::int64_t begin = lent + (view.offset + coordinate * view.stride) * size;
    // A view outside its buffer is reported by another rule; here it is cut to what exists.
    const std::uint32_t lender = lender_of(view.buffer);
    const std::int64_t bytes = buffers_[lender].bytes();
    return {lender,
            std::clamp<std::int64_t>(begin, 0, bytes),
            std::clamp<std::int64_t>(begin + view.elements * size, 0, bytes)};
  }

  const CheckContext& context_;
  int section_;
  int class_;
  const Program& program_;
  const std::vector<Buffer>& buffers_;
  HappensBefore order_;
  ClassCoordinates coordinates_{};
  std::vector<std::uint8_t> looked_at_;  ///< by buffer
  std::vector<SegmentMap> memory_;       ///< by buffer
};

}  // namespace

void check_races(const CheckContext& context) {
  for (int section = 0; section < static_cast<int>(context.plan.sections.size()); ++section) {
    for (int index = 0; index < context.plan.class_count(); ++index) {
      RaceCheck(context, section, index).run();
    }
  }
}

}  // namespace lockstep
