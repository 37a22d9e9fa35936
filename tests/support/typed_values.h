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

/// Element `i` as a number.
inline double decode(DType dtype, const std::byte* from, std::size_t i) {
  from += i * static_cast<std::size_t>(size_of(dtype));
  switch (dtype) {
    case DType::kFp64:
      return get_value<double>(from);
    case DType::kFp32:
      return static_cast<double>(get_value<float>(from));
    case DType::kBf16:
      return static_cast<double>(exec::bfloat16_to_float(get_value<std::uint16_t>(from)));
    case DType::kFp16:
      return static_cast<double>(exec::half_to_float(get_value<std::uint16_t>(from)));
    case DType::kInt64:
      return static_cast<double>(get_value<std::int64_t>(from));
    case DType::kInt32:
      return static_cast<double>(get_value<std::int32_t>(from));
    case DType::kUint8:
      return static_cast<double>(get_value<std::uint8_t>(from));
  }
  return 0;
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
