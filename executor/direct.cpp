// Direct: every member reads from all others. Two meetings, no matter how many members.
//
// Reductions are cut into one slice per member. Member r alone reads slice r of all inputs, and
// writes the sum to slice r of all outputs, block by block while the block is in its cache. Nobody
// else reads what it overwrites, so in place is no special case.
#include <algorithm>
#include <array>

#include "core/check.h"
#include "executor/algorithms.h"
#include "executor/reduce.h"

namespace lockstep::exec {

namespace {

constexpr int kMaximumMembers = 256;
constexpr std::int64_t kBlockBytes = 16 << 10;

using Sources = std::array<const void*, kMaximumMembers>;

std::span<const void* const> inputs(const Exchange& x, std::int64_t offset, Sources& sources) {
  LOCKSTEP_CHECK(x.size() <= kMaximumMembers, "more ranks than one process should have");
  for (int k = 0; k < x.size(); ++k) {
    sources[static_cast<std::size_t>(k)] = x.in(k, offset);
  }
  return {sources.data(), static_cast<std::size_t>(x.size())};
}

/// Elements [begin, end) of slice `index` of `elements`, cut at multiples of 64 to keep lines
/// whole.
struct Slice {
  std::int64_t begin;
  std::int64_t end;
};
Slice slice_of(std::int64_t elements, int index, int count) {
  const std::int64_t lines = (elements + 63) / 64;
  const auto bound = [&](std::int64_t i) { return std::min(elements, lines * i / count * 64); };
  return {bound(index), bound(index + 1)};
}

/// Sums elements [begin, end) of all inputs into `to(begin)...` of the members in [first, last).
void reduce_slice(Exchange& x, Slice slice, int first, int last) {
  const Transfer& op = x.transfer();
  const std::int64_t step = x.is_observed() ? std::max<std::int64_t>(slice.end - slice.begin, 1)
                                            : kBlockBytes / size_of(op.dtype);
  const bool mine = first <= x.rank() && x.rank() < last;
  const int keeper = mine ? x.rank() : first;  // whose output gets the sum itself
  for (std::int64_t begin = slice.begin; begin < slice.end; begin += step) {
    const std::int64_t count = std::min(step, slice.end - begin);
    const std::int64_t bytes = x.bytes_of(count);
    const Clock::time_point start = x.is_observed() ? Clock::now() : Clock::time_point();
    Sources sources;
    reduce_in_order(op.reduction, op.dtype, x.out(keeper, begin), inputs(x, begin, sources), count);
    for (int k = 0; x.is_observed() && k < x.size(); ++k) {
      x.report({0, k, x.rank(), x.rank(), begin, count, true}, start);
    }
    const Clock::time_point sent = x.is_observed() ? Clock::now() : Clock::time_point();
    for (int k = first; k < last; ++k) {
      Exchange::copy(x.out(k, begin), x.out(keeper, begin), bytes);
    }
    for (int k = first; x.is_observed() && k < last; ++k) {
      x.report({1, x.rank(), k, x.rank(), begin, count}, sent);
    }
  }
}

void reduce_eager(Exchange& x) {
  const Transfer& op = x.transfer();
  Sources sources;
  for (int k = 0; k < x.size(); ++k) {
    sources[static_cast<std::size_t>(k)] = x.eager(k);
  }
  reduce_in_order(op.reduction,
                  op.dtype,
                  x.out(x.rank()),
                  {sources.data(), static_cast<std::size_t>(x.size())},
                  op.elements);
}

void reduce_scatter(Exchange& x) {
  const Transfer& op = x.transfer();
  const std::int64_t first = x.rank() * op.elements;
  const Clock::time_point start = Clock::now();
  Sources sources;
  reduce_in_order(op.reduction, op.dtype, x.out(x.rank()), inputs(x, first, sources), op.elements);
  for (int k = 0; x.is_observed() && k < x.size(); ++k) {
    x.report({0, k, x.rank(), x.rank(), first, op.elements, true}, start);
  }
}

/// Calls `act(src, from, to)` for every block that this member takes: from element `from` of member
/// src's input to element `to` of its output. Its own first, then its right neighbour's and so on,
/// so that not all read from the same member at once.
template <typename Act>
void each_block(const Exchange& x, Act act) {
  const Transfer& op = x.transfer();
  const std::int64_t n = op.elements;
  const bool all_to_all = op.collective == Collective::kAllToAll;
  if (op.collective == Collective::kBroadcast && x.has_out(x.rank())) {
    act(op.peer, std::int64_t{0}, std::int64_t{0});
  } else if (op.collective == Collective::kScatter) {
    act(op.peer, x.rank() * n, std::int64_t{0});
  } else if (all_to_all || op.collective == Collective::kAllGather ||
             (op.collective == Collective::kGather && x.rank() == op.peer)) {
    const std::int64_t block = all_to_all ? n / x.size() : n;
    for (int i = 0; i < x.size(); ++i) {
      const int k = (x.rank() + i) % x.size();
      act(k, all_to_all ? x.rank() * block : 0, k * block);
    }
  }
}

void copy_direct(Exchange& x) {
  const Transfer& op = x.transfer();
  const bool parts = op.collective == Collective::kAllToAll;
  const std::int64_t count = parts ? op.elements / x.size() : op.elements;
  const std::int64_t bytes = x.bytes_of(count);
  const Clock::time_point start = Clock::now();
  each_block(x, [&](int src, std::int64_t from, std::int64_t to) {
    Exchange::copy(x.out(x.rank(), to), x.in(src, from), bytes);
  });
  if (x.is_observed()) {
    // One of the two is 0 unless all send to all, which is a message of all inputs behind another.
    each_block(x, [&](int src, std::int64_t from, std::int64_t to) {
      const std::int64_t begin = parts ? src * op.elements + from : from + to;
      x.report({0, src, x.rank(), src, begin, count}, start);
    });
  }
}

}  // namespace

void run_direct(Exchange& x) {
  const Transfer& op = x.transfer();
  if (op.collective == Collective::kBarrier) {
    return;  // all have come
  }
  if (x.is_eager()) {
    return reduce_eager(x);
  }
  if (op.collective == Collective::kAllReduce) {
    reduce_slice(x, slice_of(op.elements, x.rank(), x.size()), 0, x.size());
  } else if (op.collective == Collective::kReduce) {
    reduce_slice(x, slice_of(op.elements, x.rank(), x.size()), op.peer, op.peer + 1);
  } else if (op.collective == Collective::kReduceScatter) {
    reduce_scatter(x);
  } else {
    copy_direct(x);
  }
  x.finish();
}

}  // namespace lockstep::exec
