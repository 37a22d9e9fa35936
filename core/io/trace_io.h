// Trace files: a trace with the scenario whose plan it ran, so that a file is enough to report,
// draw and compare. Binary, columnar, small (ten to fifteen bytes per span); bytes do not depend on
// the machine.
//
//   offset  0  "LSTRACE\n"
//           8  version, options of the plan   (u32 each, little-endian, as all that follow)
//          16  bytes behind the header, their checksum, fingerprint of the plan   (u64 each)
//          40  scenario text, facts, stalls, steps; per track the columns operation, state, issued,
//              arrived, started, ended: differences as variable-length integers (LEB128, zigzag)
//
// Reading refuses, in one line each: what is no trace, a newer version, a file that ends early, one
// whose checksum or content is wrong, and one whose scenario gives another plan than it was made
// from. It never allocates more than a small multiple of the file's size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/plan.h"
#include "core/scenario.h"
#include "core/stop_check.h"
#include "core/trace.h"

namespace lockstep {

inline constexpr std::uint32_t kTraceVersion = 1;

/// What a file holds, before its scenario is planned.
struct TraceFile {
  std::string scenario;  ///< scenario.json
  std::uint64_t fingerprint = 0;
  bool evaluate = true;  ///< the plan had these sections
  bool save = true;
  Trace trace;
};

std::string encode_trace(const TraceFile& file);
/// BadInputError; `source` is for its message.
TraceFile decode_trace(std::string_view bytes, std::string_view source);
/// Makes size and checksum of the header right again after the bytes were changed.
void seal_trace(std::string& bytes);

/// Everything that can be said about a trace.
struct LoadedTrace {
  Scenario scenario;  ///< resolved
  Plan plan;
  Trace trace;
};

/// Writes a file beside `path` and renames it, so that `path` is whole or as it was. `scenario` is
/// the resolved one that `plan` was made from. NotSupportedError when it cannot be written.
void save_trace(const std::string& path,
                const Scenario& scenario,
                const Plan& plan,
                const Trace& trace);
/// BadInputError as above.
LoadedTrace load_trace(const std::string& path, const StopCheck& stop_check = {});

}  // namespace lockstep
