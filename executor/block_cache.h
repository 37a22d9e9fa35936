// BlockCache: memory of the machine, kept for reuse. After the first steps of a training run every
// request finds a block that an earlier one gave back, so a step does not call malloc.
//
// Blocks are 64-byte aligned and never split; a request takes the smallest free block that is large
// enough and wastes at most a quarter. Blocks of 2 MiB and more ask the kernel for huge pages.
#pragma once

#include <cstdint>
#include <vector>

#include "executor/device.h"

namespace lockstep::exec {

class BlockCache {
 public:
  static constexpr std::int64_t kAlignment = 64;

  /// Places in streams that have to be reached before a block may be lent again.
  struct Uses {
    std::uint8_t count = 0;
    Event event[kMaximumStreams];
  };
  struct Block {
    std::byte* memory = nullptr;
    std::int64_t capacity = 0;
    Uses uses;
  };

  BlockCache() = default;
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;
  ~BlockCache();

  /// A block of `bytes` or more of which all uses are `reached`; from the machine if there is none.
  /// memory == nullptr: the machine has none either.
  template <typename Reached>
  Block take(std::int64_t bytes, Reached reached) {
    const std::int64_t wanted = (bytes / kAlignment + 1) * kAlignment;
    for (std::size_t i = first_of(wanted); i < free_.size(); ++i) {
      if (free_[i].capacity > wanted + wanted / 4) {
        break;
      }
      if (all(free_[i].uses, reached)) {
        const Block block = free_[i];
        free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(i));
        return block;
      }
    }
    return fresh(wanted);
  }

  void give_back(const Block& block);

  /// Returns every block of which all uses are `reached` to the machine.
  template <typename Reached>
  void trim(Reached reached) {
    std::size_t kept = 0;
    for (const Block& block : free_) {
      if (all(block.uses, reached)) {
        release(block);
      } else {
        free_[kept++] = block;
      }
    }
    free_.resize(kept);
  }

  std::int64_t free_blocks() const { return static_cast<std::int64_t>(free_.size()); }

 private:
  template <typename Reached>
  static bool all(const Uses& uses, Reached reached) {
    for (int i = 0; i < uses.count; ++i) {
      if (!reached(uses.event[i])) {
        return false;
      }
    }
    return true;
  }
  /// Index of the first free block of at least `bytes`.
  std::size_t first_of(std::int64_t bytes) const;
  static Block fresh(std::int64_t bytes);
  static void release(const Block& block);

  std::vector<Block> free_;  ///< ascending by capacity
};

}  // namespace lockstep::exec
