// Collective files: one recorded collective as JSON, which `lockstep collective --out` writes and
// the stepper reads. Times are nanoseconds from the moment when all ranks were there.
//
//   {"schema_version": 1, "collective": "all_reduce", "algorithm": "ring", "dtype": "fp32",
//    "ranks": 4, "root": 0, "message_bytes": 400, "time_ns": 5200,
//    "moves": [{"step": 0, "src": 3, "dst": 0, "chunk": 3, "begin": 300, "bytes": 100,
//               "reduces": true, "start_ns": 400, "end_ns": 520}, ...]}
//
// A file is read when every move lies between ranks and inside the message that it speaks of;
// whether the moves make the collective is the stepper's to find out.
#pragma once

#include <string>
#include <string_view>

#include "core/collective_record.h"

namespace lockstep {

inline constexpr int kCollectiveVersion = 1;

/// More could not be read back (kMaxJsonValues).
inline constexpr std::size_t kMostRecordedMoves = 5'000;

/// All keys in a fixed order, ending with a newline; parse_collective gives the same record back
/// but for labels and sequence numbers.
std::string collective_text(const CollectiveRecord& record);

/// BadInputError with all problems; `source` is for messages.
CollectiveRecord parse_collective(std::string_view text, std::string_view source);
CollectiveRecord load_collective(const std::string& path);

}  // namespace lockstep
