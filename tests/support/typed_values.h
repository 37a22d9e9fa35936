// Numbers as the bytes of an element type and back, for tests that go through every DType.
#pragma once

#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "executor/reduce.h"

namespace lockstep::test {

using Bytes = std::vector<std::byte>;

template <typename T>
void put_value(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}
template <typename T>
T get_value(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

inline Bytes encode(DType dtype, const std::vector<double>& values) {
  const auto size = static_cast<std::size_t>(size_of(dtype));
  Bytes bytes(values.size() * size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* const to = bytes.data() + i * size;
    const auto single = static_cast<float>(values[i]);
    switch (dtype) {
      case DType::kFp64:
        put_value(to, values[i]);
        break;
      case DType::kFp32:
        put_value(to, single);
        break;
      case DType::kBf16:
        put_value(to, exec::float_to_bfloat16(single));
        break;
      case DType::kFp16:
        put_value(to, exec::float_to_half(single));
        break;
      case DType::kInt64:
        put_value(to, static_cast<std::int64_t>(values[i]));
        break;
      case DType::kInt32:
        put_value(to, static_cast<std::int32_t>(values[i]));
        break;
      case DType::kUint8:
        put_value(to, static_cast<std::uint8_t>(values[i]));
        break;
    }
  }
  return bytes;
}

}  // namespace lockstep::test
