// Any bytes as a trace file: read or refused with lockstep::BadInputError. The header's size and
// checksum are made right first, so that what lies behind them is reached; what was read is written
// and read back to the byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/io/trace_io.h"

namespace {

void check(std::string_view bytes) {
  try {
    const std::string written = encode_trace(lockstep::decode_trace(bytes, "fuzz"));
    if (encode_trace(lockstep::decode_trace(written, "written")) != written) {
      std::abort();
    }
  } catch (const lockstep::BadInputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  check(bytes);
  if (bytes.size() >= 40) {
    lockstep::seal_trace(bytes);
    check(bytes);
  }
  return 0;
}
