// The `lockstep-view` program: a window, or a picture of it.
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "visualizer/options.h"
#include "visualizer/shot/shot.h"
#include "visualizer/window.h"

namespace lockstep {
namespace {

int run(const std::vector<std::string>& arguments) {
  const ViewOptions options = parse_view_options(arguments);
  if (options.help) {
    fmt::print("{}", view_help());
  } else if (options.version) {
    fmt::print("lockstep-view {}\n", LOCKSTEP_VERSION);
  } else if (!options.shot.empty()) {
    shot::take_shot(options);
  } else {
    run_window(options);
  }
  return 0;
}

int report(std::string message, int code) {
  for (char& c : message) {
    c = c == '\n' ? ' ' : c;  // one line, whatever a message holds
  }
  fmt::print(stderr, "lockstep-view: {}\n", message);
  return code;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  try {
    return lockstep::run(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const lockstep::Error& error) {
    return lockstep::report(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return lockstep::report("[memory] this machine has not enough of it for that",
                            static_cast<int>(lockstep::ErrorKind::kOutOfMemory));
  } catch (const std::exception& error) {
    return lockstep::report(error.what(), static_cast<int>(lockstep::ErrorKind::kInternal));
  }
}
