// Any bytes as a scenario file, and as KEY=VALUE of --set: read or refused with lockstep::Error.
// What was read can be resolved and validated without overflow, and what is valid is written and
// read back to the byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/io/scenario_io.h"
#include "core/scenario.h"

namespace {

using lockstep::Scenario;

void check(const Scenario& scenario) {
  const Scenario done = resolved(scenario);
  if (!validate(done).empty()) {
    return;
  }
  const std::string text = scenario_text(done);
  if (scenario_text(lockstep::parse_scenario(text, "written")) != text) {
    std::abort();
  }
}

void read_file(std::string_view text) {
  try {
    check(lockstep::parse_scenario(text, "fuzz.json"));
  } catch (const lockstep::BadInputError&) {
  }
}

void set_one(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) {
    return;
  }
  Scenario scenario;
  try {
    set_key(scenario, text.substr(0, equals), text.substr(equals + 1), std::nullopt);
    check(scenario);
  } catch (const lockstep::UsageError&) {
  } catch (const lockstep::BadInputError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_file(text);
  set_one(text);
  return 0;
}
