#include "executor/block_cache.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

namespace lockstep::exec {

namespace {

constexpr std::int64_t kHugePage = 2 << 20;

}  // namespace

BlockCache::~BlockCache() {
  for (const Block& block : free_) {
    release(block);
  }
}

std::size_t BlockCache::first_of(std::int64_t bytes) const {
  const auto smaller = [](const Block& block, std::int64_t least) {
    return block.capacity < least;
  };
  return static_cast<std::size_t>(std::lower_bound(free_.begin(), free_.end(), bytes, smaller) -
                                  free_.begin());
}

void BlockCache::give_back(const Block& block) {
  free_.insert(free_.begin() + static_cast<std::ptrdiff_t>(first_of(block.capacity)), block);
}

BlockCache::Block BlockCache::fresh(std::int64_t bytes) {
  const bool huge = bytes >= kHugePage;
  const auto alignment = static_cast<std::size_t>(huge ? kHugePage : kAlignment);
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) {
    return {};
  }
  if (huge) {
    madvise(memory, size, MADV_HUGEPAGE);  // advice: nothing depends on it
  }
  return {static_cast<std::byte*>(memory), bytes, {}};
}

void BlockCache::release(const Block& block) {
  std::free(block.memory);
}

}  // namespace lockstep::exec
