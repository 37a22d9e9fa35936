#include "core/planner/segment_fragments.h"

#include <algorithm>

#include "core/check.h"
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

std::uint32_t FragmentStore::shape(const Shape& shape) {
  std::uint64_t hash = 0;
  for (const std::int64_t extent : shape.extent) {
    hash = mix(hash, static_cast<std::uint64_t>(extent));
  }
  std::vector<std::uint32_t>& bucket = shape_index_[hash];
  for (const std::uint32_t index : bucket) {
    if (shapes_[index] == shape) {
      return index;
    }
  }
  bucket.push_back(static_cast<std::uint32_t>(shapes_.size()));
  shapes_.push_back(shape);
  return bucket.back();
}

std::uint8_t FragmentStore::communicator(const Communicator& communicator) {
  const auto found = std::find(communicators_.begin(), communicators_.end(), communicator);
  if (found != communicators_.end()) {
    return static_cast<std::uint8_t>(found - communicators_.begin());
  }
  LOCKSTEP_CHECK(communicators_.size() < kNoCommunicator, "too many kinds of groups");
  communicators_.push_back(communicator);
  return static_cast<std::uint8_t>(communicators_.size() - 1);
}

OperationCount FragmentStore::translated(const OperationCount& count, const Plan& tables) {
  OperationCount result = count;
  if (count.shape != 0) {
    result.shape = shape(tables.shapes[count.shape]);
  }
  if (count.communicator != kNoCommunicator) {
    result.communicator = communicator(tables.communicators[count.communicator]);
  }
  return result;
}

const Fragment* FragmentStore::store(Fragment fragment, const Plan& tables) {
  if (fragment.empty()) {
    return nullptr;
  }
  for (OperationCount& count : fragment.counts) {
    count = translated(count, tables);
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
  shapes_.assign(1, Shape{});
  shape_index_.clear();
  communicators_.clear();
}

}  // namespace lockstep
