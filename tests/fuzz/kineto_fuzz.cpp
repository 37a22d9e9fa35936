// Any bytes as a Chrome or Kineto trace: read or refused with lockstep::BadInputError, and what was
// read is in order.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/io/kineto_reader.h"

namespace {

void require(bool holds) {
  if (!holds) {
    std::abort();
  }
}

void check_lane(const lockstep::ImportedTrace& trace, const lockstep::ImportedLane& lane) {
  lockstep::Nanoseconds before = 0;
  for (const lockstep::ImportedSpan& span : lane.spans) {
    require(span.begin >= before && span.end >= span.begin && span.end <= trace.end);
    require(span.name < trace.names.size() && span.category < trace.names.size());
    require(span.collective < static_cast<std::int32_t>(trace.collectives.size()));
    before = span.begin;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const lockstep::ImportedTrace trace = lockstep::import_kineto_text(
        std::string_view(reinterpret_cast<const char*>(data), size), "fuzz");
    require(!trace.ranks.empty());
    for (const lockstep::ImportedRank& rank : trace.ranks) {
      for (const lockstep::ImportedLane& lane : rank.lanes) {
        check_lane(trace, lane);
      }
    }
  } catch (const lockstep::BadInputError&) {
  }
  return 0;
}
