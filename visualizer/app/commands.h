// Commands: everything that can be done without pointing at it. One table for keys, palette and
// keyboard map.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "visualizer/ui/strings.h"

namespace lockstep::app {

struct Command {
  std::string id;     ///< "theme.dark": matched by the palette in every language
  std::string title;  ///< in the window's language
  std::string keys;   ///< as shown: "Ctrl+Z"; may be empty
  std::function<void()> run;
  std::function<bool()> hit;  ///< its keys were pressed in this frame; may be null
  bool enabled = true;
};

/// Those whose id or title has all words of `text`, best first.
std::vector<const Command*> matching(const std::vector<Command>& commands, std::string_view text);

}  // namespace lockstep::app
