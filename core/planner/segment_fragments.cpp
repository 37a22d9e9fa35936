#include "core/planner/segment_fragments.h"

#include <algorithm>

#include "core/planner/mix.h"

namespace lockstep {
namespace {

bool same(const OperationCount& a, const OperationCount& b) {
  return a.kind == b.kind && a.work == b.work && a.collective == b.collective &&
         a.phase == b.phase && a.stream == b.stream && a.communicator == b.communicator &&
         a.dtype == b.dtype && a.control == b.control && a.shape == b.shape &&
         a.elements == b.elements && a.count == b.count;
}

std::uint64_t hash_of(const Fragment& fragment) {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(fragment.delta_total),
                           static_cast<std::uint64_t>(fragment.peak_total));
  for (const std::int64_t bytes : fragment.delta) {
    hash = mix(hash, static_cast<std::uint64_t>(bytes));
  }
  for (const OperationCount& count : fragment.counts) {
    hash = mix(hash, (std::uint64_t{count.shape} << 32U) + static_cast<std::uint64_t>(count.work));
    hash = mix(hash, static_cast<std::uint64_t>(count.elements * 1000003 + count.count));
  }
  return hash;
}

}  // namespace

bool operator==(const Fragment& a, const Fragment& b) {
  const bool numbers = a.delta == b.delta && a.peak_delta == b.peak_delta &&
                       a.delta_total == b.delta_total && a.peak_total == b.peak_total &&
                       a.operations == b.operations && a.has_operations == b.has_operations &&
                       a.peak_open == b.peak_open && a.first == b.first && a.peak == b.peak;
  return numbers &&
         std::equal(a.counts.begin(), a.counts.end(), b.counts.begin(), b.counts.end(), same);
}

const Fragment* FragmentStore::store(Fragment fragment) {
  if (fragment.empty()) {
    return nullptr;
  }
  std::vector<std::unique_ptr<const Fragment>>& bucket = fragments_[hash_of(fragment)];
  for (const std::unique_ptr<const Fragment>& known : bucket) {
    if (*known == fragment) {
      return known.get();
    }
  }
  bucket.push_back(std::make_unique<const Fragment>(std::move(fragment)));
  ++count_;
  return bucket.back().get();
}

void FragmentStore::clear() {
  fragments_.clear();
  count_ = 0;
}

}  // namespace lockstep
