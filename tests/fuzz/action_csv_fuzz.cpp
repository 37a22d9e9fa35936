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

namespace lockstep {
namespace {

void check_action_csv(std::string_view text) {
  try {
    const Schedule schedule = read_action_csv(text);
    if (read_action_csv(write_action_csv(schedule)) != schedule) {
      std::abort();
    }
    // Whatever was accepted runs: no cycle, and messages can be added.
    time_schedule(schedule);
    time_schedule(add_communication(compute_only(schedule)));
  } catch (const BadInputError&) {
    return;  // refused with a place and a reason
  }
}

}  // namespace
}  // namespace lockstep

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  lockstep::check_action_csv({reinterpret_cast<const char*>(data), size});
  return 0;
}
