// A checker of what Perfetto's importer of Chrome JSON accepts without an import error, written
// from its sources (src/trace_processor/importers/json, v58): required keys and their types,
// metadata it honours, slices that nest within a thread, flows whose ends meet and lie in a slice,
// counters with numbers, no control characters, printable names.
//
//     CHECK(check_chrome_trace(text).problems == std::vector<std::string>{});
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep::test {

struct ChromeTraceFacts {
  std::vector<std::string> problems;  ///< at most 20
  std::int64_t slices = 0;
  std::int64_t flows = 0;  ///< pairs
  std::int64_t counters = 0;
  std::map<std::int64_t, std::string> processes;                           ///< pid -> name
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;    ///< (pid, tid) -> name
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> busy_ns;   ///< sum of durations
  std::map<std::pair<std::int64_t, std::string>, double> highest_counter;  ///< (pid, key)
};

ChromeTraceFacts check_chrome_trace(std::string_view json);

}  // namespace lockstep::test
