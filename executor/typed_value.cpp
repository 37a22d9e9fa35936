#include "executor/typed_value.h"

#include <cstdint>
#include <cstring>

#include "executor/reduce.h"

namespace lockstep::exec {
namespace {

template <typename T>
void put(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof(T));
}

template <typename T>
T get(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace

void write_value(DType dtype, std::byte* to, double value) {
  switch (dtype) {
    case DType::kFp64:
      return put(to, value);
    case DType::kFp32:
      return put(to, static_cast<float>(value));
    case DType::kBf16:
      return put(to, float_to_bfloat16(static_cast<float>(value)));
    case DType::kFp16:
      return put(to, float_to_half(static_cast<float>(value)));
    case DType::kInt64:
      return put(to, static_cast<std::int64_t>(value));
    case DType::kInt32:
      return put(to, static_cast<std::int32_t>(value));
    case DType::kUint8:
      return put(to, static_cast<std::uint8_t>(value));
  }
}

double read_value(DType dtype, const std::byte* from) {
  switch (dtype) {
    case DType::kFp64:
      return get<double>(from);
    case DType::kFp32:
      return static_cast<double>(get<float>(from));
    case DType::kBf16:
      return static_cast<double>(bfloat16_to_float(get<std::uint16_t>(from)));
    case DType::kFp16:
      return static_cast<double>(half_to_float(get<std::uint16_t>(from)));
    case DType::kInt64:
      return static_cast<double>(get<std::int64_t>(from));
    case DType::kInt32:
      return static_cast<double>(get<std::int32_t>(from));
    case DType::kUint8:
      return static_cast<double>(get<std::uint8_t>(from));
  }
  return 0;
}

}  // namespace lockstep::exec
