// BucketsParts: what the files of BucketsView share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::views {

inline std::size_t index_of(std::int32_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace lockstep::views
