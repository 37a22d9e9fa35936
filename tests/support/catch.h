// Catch2, version 2 (Debian 12, Ubuntu 22.04) or 3 (Ubuntu 24.04), by the name its header has
// there. Version 3 keeps Approx in its own namespace; tests write Approx.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
namespace Catch::Matchers {
inline auto ContainsSubstring(const std::string& part) {
  return Contains(part);
}
}  // namespace Catch::Matchers
#endif
