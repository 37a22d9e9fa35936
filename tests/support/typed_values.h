// Numbers as the bytes of an element type and back, for tests that go through every DType.
#pragma once

#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "executor/typed_value.h"

namespace lockstep::test {

using Bytes = std::vector<std::byte>;

inline Bytes encode(DType dtype, const std::vector<double>& values) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  Bytes bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    exec::write_value(dtype, bytes.data() + i * size, values[i]);
  }
  return bytes;
}

/// Element `i` as a number.
inline double decode(DType dtype, const std::byte* from, std::size_t i) {
  return exec::read_value(dtype, from + i * static_cast<std::size_t>(size_of(dtype)));
}

/// Distance from 1 to the next number; 0 for integers.
inline double epsilon_of(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
      return 0x1p-52;
    case DType::kFp32:
      return 0x1p-23;
    case DType::kBf16:
      return 0x1p-7;
    case DType::kFp16:
      return 0x1p-10;
    default:
      return 0;
  }
}

}  // namespace lockstep::test
