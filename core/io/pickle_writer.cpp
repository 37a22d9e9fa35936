#include "core/io/pickle_writer.h"

#include <limits>

namespace lockstep {
namespace {

constexpr std::size_t kFlushAt = std::size_t{1} << 16;
constexpr std::uint32_t kByteIndices = 256;  // what BINPUT and BINGET can name

}  // namespace

void PickleWriter::add(char opcode) {
  bytes_ += opcode;
  if (bytes_.size() >= kFlushAt) {
    sink_(bytes_);
    bytes_.clear();
  }
}

void PickleWriter::little_endian(std::uint64_t value, int count) {
  for (int i = 0; i < count; ++i) {
    bytes_ += static_cast<char>((value >> (8U * static_cast<unsigned>(i))) & 0xFFU);
  }
}

void PickleWriter::whole(std::int64_t value) {
  using Narrow = std::numeric_limits<std::int32_t>;
  if (value >= Narrow::min() && value <= Narrow::max()) {
    add('J');  // BININT
    little_endian(static_cast<std::uint64_t>(value), 4);
  } else {
    add('\x8a');  // LONG1: a count, then two's complement
    bytes_ += '\x08';
    little_endian(static_cast<std::uint64_t>(value), 8);
  }
}

void PickleWriter::text(std::string_view value) {
  const auto number = static_cast<std::uint32_t>(memo_.size());
  const auto [found, fresh] = memo_.emplace(value, number);
  const bool narrow = found->second < kByteIndices;
  if (fresh) {
    add('X');  // BINUNICODE
    little_endian(value.size(), 4);
    bytes_ += value;
    add(narrow ? 'q' : 'r');  // BINPUT, LONG_BINPUT
  } else {
    add(narrow ? 'h' : 'j');  // BINGET, LONG_BINGET
  }
  little_endian(found->second, narrow ? 1 : 4);
}

void PickleWriter::finish() {
  bytes_ += '.';  // STOP
  sink_(bytes_);
  bytes_.clear();
}

}  // namespace lockstep
