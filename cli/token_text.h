// Tokens as text: bytes as they are, but control characters; ids beyond bytes by number.
#pragma once

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace lockstep::cli {

inline std::string token_text(std::int64_t token) {
  if (token > 255) {
    return fmt::format("<{}>", token);
  }
  const char c = static_cast<char>(token);
  const bool shows = c == '\n' || c == '\t' || token >= 32;
  return shows ? std::string(1, c) : std::string("?");
}

}  // namespace lockstep::cli
