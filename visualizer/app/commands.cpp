#include "visualizer/app/commands.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace lockstep::app {
namespace {

/// Bytes outside ASCII are left as they are.
std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return c < 0x80 ? static_cast<char>(std::tolower(c)) : static_cast<char>(c);
  });
  return result;
}

/// Smaller is better; -1: no match.
int rank_of(const Command& command, const std::string& text) {
  const std::string where = lower(command.title) + " " + lower(command.id);
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    if (where.find(word) == std::string::npos) {
      return -1;
    }
  }
  return where.rfind(text, 0) == 0 ? 0 : 1;
}

}  // namespace

std::vector<const Command*> matching(const std::vector<Command>& commands, std::string_view text) {
  const std::string wanted = lower(text);
  std::vector<const Command*> found;
  for (const int rank : {0, 1}) {
    for (const Command& command : commands) {
      if (command.enabled && rank_of(command, wanted) == rank) {
        found.push_back(&command);
      }
    }
  }
  return found;
}

}  // namespace lockstep::app
