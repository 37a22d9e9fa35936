// Any bytes as an action CSV: read or refused, nothing but lockstep::Error, and what was read
// survives a trip through the writer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "core/planner/schedule/action_csv.h"
#include "core/planner/schedule/communication.h"
#include "core/planner/schedule/unit_time.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const Schedule schedule = read_action_csv(text);
    if (read_action_csv(write_action_csv(schedule)) != schedule) {
      std::abort();
    }
    // Whatever was accepted runs: no cycle, and messages can be added.
    time_schedule(schedule);
    time_schedule(add_communication(compute_only(schedule)));
  } catch (const BadInputError&) {
  }
  return 0;
}
