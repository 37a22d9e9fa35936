// Element types of buffers and messages, with their sizes.
//
// tf32 is not a storage type: it is fp32 in memory with a faster matrix product, so it appears only
// as a Precision (core/training.h), never here.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

enum class DType : std::uint8_t { kFp64, kFp32, kBf16, kFp16, kInt64, kInt32, kUint8 };

inline constexpr int kDTypeCount = 7;

constexpr bool is_floating(DType dtype) {
  return dtype == DType::kFp64 || dtype == DType::kFp32 || dtype == DType::kBf16 ||
         dtype == DType::kFp16;
}

/// Bytes of one element.
constexpr std::int64_t size_of(DType dtype) {
  switch (dtype) {
    case DType::kFp64:
    case DType::kInt64:
      return 8;
    case DType::kFp32:
    case DType::kInt32:
      return 4;
    case DType::kBf16:
    case DType::kFp16:
      return 2;
    case DType::kUint8:
      return 1;
  }
  return 0;
}

/// Lower-case name as scenario files spell it: "fp32", "bf16", "int64", ...
std::string_view name_of(DType dtype);

}  // namespace lockstep
