#include "executor/typed_value.h"

#include <array>

#include "tests/support/catch.h"

namespace lockstep::exec {
namespace {

TEST_CASE("numbers that a type can hold come back from its bytes") {
  for (const DType dtype : {DType::kFp64,
                            DType::kFp32,
                            DType::kBf16,
                            DType::kFp16,
                            DType::kInt64,
                            DType::kInt32,
                            DType::kUint8}) {
    for (const double value : {0.0, 1.0, 5.0, 240.0}) {
      std::array<std::byte, 9> bytes{};
      bytes.fill(std::byte{0xa5});
      write_value(dtype, bytes.data() + 1, value);  // at an odd address
      CHECK(read_value(dtype, bytes.data() + 1) == value);
      for (std::size_t i = 1 + static_cast<std::size_t>(size_of(dtype)); i < bytes.size(); ++i) {
        CHECK(bytes[i] == std::byte{0xa5});
      }
    }
  }
}

TEST_CASE("one is 0x3f80 in bf16 and 0x3c00 in fp16") {
  std::array<std::byte, 2> bytes{};
  write_value(DType::kBf16, bytes.data(), 1);
  CHECK(bytes == std::array{std::byte{0x80}, std::byte{0x3f}});
  write_value(DType::kFp16, bytes.data(), 1);
  CHECK(bytes == std::array{std::byte{0x00}, std::byte{0x3c}});
}

}  // namespace
}  // namespace lockstep::exec
