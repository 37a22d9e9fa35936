// ImportedTrace: what a trace file of another tool says (PyTorch's profiler, our own Chrome and
// Kineto exports): ranks, their lanes, spans on lanes, arrows between spans. It has no plan behind
// it, so names are the file's; core/io/kineto_reader.h reads it.
//
//     for (const ImportedLane& lane : trace.ranks[0].lanes)
//       for (const ImportedSpan& span : lane.spans)
//         draw(lane, span.begin, span.end, span.depth, trace.names.text(span.name));
//
// Strings are in one table; equal strings have equal numbers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/trace.h"

namespace lockstep {

using NameId = std::uint32_t;
inline constexpr std::uint32_t kNoSpanNumber = 0xffffffffU;

/// Strings by number; 0 is the empty one.
class NameTable {
 public:
  NameTable() { intern(""); }
  // The map's keys point into the deque, which a copy would not take along; a moved deque keeps its
  // strings where they are.
  NameTable(const NameTable&) = delete;
  NameTable& operator=(const NameTable&) = delete;
  NameTable(NameTable&&) = default;
  NameTable& operator=(NameTable&&) = default;
  ~NameTable() = default;

  NameId intern(std::string_view text);
  const std::string& text(NameId id) const { return texts_[id]; }
  std::size_t size() const { return texts_.size(); }
  std::size_t bytes() const { return bytes_; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, NameId> ids_;
  std::size_t bytes_ = 0;
};

/// What a span is; of a lane: what most of its spans are, annotations aside.
enum class ImportedKind : std::uint8_t { kCpu, kCompute, kCommunication, kCopy, kAnnotation };
inline constexpr int kImportedKindCount = 5;
std::string_view name_of(ImportedKind kind);

/// What a file says about one collective or message; what it leaves out is empty.
struct ImportedCollective {
  NameId kind = 0;   ///< "all_reduce" in our spelling, however the file spells it
  NameId group = 0;  ///< name of the process group
  NameId group_description = 0;
  NameId ranks = 0;  ///< "[0, 1]"
  NameId dtype = 0;  ///< the file's: "Float"
  std::optional<std::int64_t> group_size = {};
  std::optional<std::int64_t> sequence = {};  ///< number within the group
  std::optional<std::int64_t> in_elements = {};
  std::optional<std::int64_t> out_elements = {};
  std::optional<std::int64_t> bytes = {};  ///< of the larger of both
};

struct ImportedSpan {
  Nanoseconds begin = 0;  ///< since ImportedTrace::origin
  Nanoseconds end = 0;
  NameId name = 0;
  NameId category = 0;
  std::int32_t collective = -1;  ///< index into ImportedTrace::collectives
  std::uint16_t depth = 0;       ///< spans of the lane that are open when it begins; saturates
  ImportedKind kind = ImportedKind::kCpu;
};

/// A thread, or a stream of a device.
struct ImportedLane {
  NameId process = 0;
  NameId process_label = 0;  ///< "CPU", "GPU 0"
  NameId name = 0;
  ImportedKind kind = ImportedKind::kCpu;
  std::uint16_t depth = 0;          ///< of the deepest span
  bool overlaps = false;            ///< some spans overlap without nesting
  std::vector<ImportedSpan> spans;  ///< by begin; enclosing ones first
};

struct ImportedRank {
  std::optional<int> rank = {};  ///< nothing: neither the file nor its name says
  std::string file;
  std::optional<int> world_size = {};
  NameId backend = 0;
  NameId device = 0;  ///< its first device's name
  std::vector<ImportedLane> lanes;
};

struct ImportedFlowEnd {
  std::int32_t rank = -1;  ///< index into ImportedTrace::ranks
  std::int32_t lane = -1;
  std::uint32_t span = kNoSpanNumber;  ///< the innermost one open there, if any
  Nanoseconds time = 0;
};

struct ImportedFlow {
  NameId name = 0;
  ImportedFlowEnd from;
  ImportedFlowEnd to;
};

struct ImportedTrace {
  NameTable names;
  std::vector<ImportedRank> ranks;  ///< by rank, unknown ones last
  std::vector<ImportedCollective> collectives;
  std::vector<ImportedFlow> flows;
  Nanoseconds origin = 0;          ///< time of the files' clock where time 0 is
  Nanoseconds end = 0;             ///< of the last span
  std::vector<std::string> notes;  ///< what had to be put right, for the reader
};

}  // namespace lockstep
