// Pictures: read from files and compared, and what differs as a picture of its own.
#pragma once

#include <string>

#include "visualizer/shot/image.h"

namespace lockstep::test {

/// By libpng alone. Fails the test when there is no such picture.
shot::Image read_png(const std::string& path);

struct Difference {
  int worst = 0;           ///< of any channel, 0 to 255
  double mean = 0;         ///< over all pixels and channels
  double far = 0;          ///< share of pixels of which a channel is off by more than kFar
  shot::Image picture;     ///< grey where equal, the redder the further apart
  bool same_size = false;  ///< else nothing of the above holds
};
inline constexpr int kFar = 8;

Difference difference(const shot::Image& one, const shot::Image& other);

}  // namespace lockstep::test
