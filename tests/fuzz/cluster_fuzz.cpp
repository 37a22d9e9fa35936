// Any bytes as a cluster file: read or refused with lockstep::BadInputError, and a valid cluster is
// written and read back to the byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/io/cluster_io.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const lockstep::ClusterSpec cluster = lockstep::parse_cluster(text, "fuzz.json");
    lockstep::Problems problems;
    validate(cluster, problems);
    if (!problems.empty()) {
      return 0;
    }
    const std::string written = cluster_text(cluster);
    if (cluster_text(lockstep::parse_cluster(written, "written")) != written) {
      std::abort();
    }
  } catch (const lockstep::BadInputError&) {
  }
  return 0;
}
