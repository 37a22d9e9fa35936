// Checksum of bytes, to notice damage: 64 bits, a multiply and a shift for every eight bytes. Not
// against anybody who means harm. Does not depend on the machine.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockstep {

/// `sum` is where it begins: what else the checksum covers.
inline std::uint64_t checksum_of(std::string_view bytes, std::uint64_t sum = 0) {
  const auto word_at = [bytes](std::size_t at, std::size_t count) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < count; ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    }
    return word;
  };
  const auto mix = [&sum](std::uint64_t word) {
    sum = (sum ^ word) * 0x9e3779b97f4a7c15U;
    sum ^= sum >> 29U;
  };
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    mix(word_at(at, 8));
  }
  mix(word_at(at, bytes.size() - at) ^ (std::uint64_t{bytes.size()} << 32U));
  return sum;
}

}  // namespace lockstep
