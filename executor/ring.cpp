// Ring: every member takes from its left neighbour only (P. Patarasuk and X. Yuan, "Bandwidth
// optimal all-reduce algorithms for clusters of workstations", 2009). n members, n chunks.
//
// reduce_scatter: n - 1 steps; in each a member adds its own chunk to the partial sum that its left
// neighbour has made in the step before. all_gather: n - 1 steps of passing whole chunks on.
// all_reduce is one after the other, 2 (n - 1) steps, each of a chunk of 1/n of the message.
//
// A chunk comes back complete only after every member has read the partial sum of its left, so
// overwriting a partial sum with the result needs no wait.
#include <algorithm>

#include "executor/algorithms.h"
#include "executor/reduce.h"

namespace lockstep::exec {

namespace {

int modulo(int value, int count) {
  return ((value % count) + count) % count;
}

std::int64_t chunk_begin(std::int64_t elements, int chunk, int count) {
  return elements * chunk / count;
}

/// In step s, member r adds to chunk r - 1 - s, which began as member c's own input.
void reduce_steps(Exchange& x, int left) {
  const Transfer& op = x.transfer();
  const int n = x.size();
  const double factor = factor_of_terms(op.reduction, op.dtype, n);
  for (int s = 0; s < n - 1; ++s) {
    const int c = modulo(x.rank() - 1 - s, n);
    const std::int64_t begin = chunk_begin(op.elements, c, n);
    const std::int64_t count = chunk_begin(op.elements, c + 1, n) - begin;
    x.await(left, static_cast<std::uint64_t>(s));
    const Term partial = s == 0 ? Term{x.in(left, begin), factor} : Term{x.out(left, begin)};
    const Term own{x.in(x.rank(), begin), factor};
    std::byte* const to = x.out(x.rank(), begin);
    x.move({s, left, x.rank(), c, begin, count, true},
           [&] { reduce_pair(op.reduction, op.dtype, to, partial, own, count); });
    if (s == n - 2 && op.reduction == Reduction::kAverage) {
      finish_average(op.dtype, to, count, n);
    }
    x.publish(static_cast<std::uint64_t>(s) + 1);
  }
}

/// In step t, member r takes chunk r - t, complete, from its left.
void gather_steps(Exchange& x, int left) {
  const Transfer& op = x.transfer();
  const int n = x.size();
  for (int t = 0; t < n - 1; ++t) {
    const int c = modulo(x.rank() - t, n);
    const std::int64_t begin = chunk_begin(op.elements, c, n);
    const std::int64_t count = chunk_begin(op.elements, c + 1, n) - begin;
    const auto step = static_cast<std::uint64_t>(n) - 1 + static_cast<std::uint64_t>(t);
    x.await(left, step);
    x.move({n - 1 + t, left, x.rank(), c, begin, count},
           [&] { Exchange::copy(x.out(x.rank(), begin), x.out(left, begin), x.bytes_of(count)); });
    x.publish(step + 1);
  }
}

void all_reduce(Exchange& x) {
  const int left = modulo(x.rank() - 1, x.size());
  reduce_steps(x, left);
  gather_steps(x, left);
  x.finish();
  x.end_steps(2 * static_cast<std::uint64_t>(x.size() - 1));
}

void all_gather(Exchange& x) {
  const int n = x.size();
  const int left = modulo(x.rank() - 1, n);
  const std::int64_t shard = x.transfer().elements;
  const std::int64_t bytes = x.bytes_of(shard);
  Exchange::copy(x.out(x.rank(), x.rank() * shard), x.in(x.rank()), bytes);
  for (int t = 0; t < n - 1; ++t) {
    const int c = modulo(x.rank() - 1 - t, n);
    x.await(left, static_cast<std::uint64_t>(t));
    const std::byte* const from = t == 0 ? x.in(left) : x.out(left, c * shard);
    x.move({t, left, x.rank(), c, c * shard, shard},
           [&] { Exchange::copy(x.out(x.rank(), c * shard), from, bytes); });
    x.publish(static_cast<std::uint64_t>(t) + 1);
  }
  x.finish();
  x.end_steps(static_cast<std::uint64_t>(n - 1));
}

/// One piece [begin, begin + count) of every shard goes around; g counts steps over all pieces.
/// Partial sums lie in scratch g % 2 of the member that made them in step g.
void reduce_scatter_piece(Exchange& x, std::int64_t begin, std::int64_t count, std::uint64_t g) {
  const Transfer& op = x.transfer();
  const int n = x.size();
  const int left = modulo(x.rank() - 1, n);
  const int right = modulo(x.rank() + 1, n);
  const double factor = factor_of_terms(op.reduction, op.dtype, n);
  for (int s = 0; s < n - 1; ++s, ++g) {
    const int c = modulo(x.rank() - 2 - s, n);
    const std::int64_t offset = c * op.elements + begin;
    const bool last = s == n - 2;
    x.await(left, g);
    if (!last) {
      x.await(right, g);  // in step g - 1 it has read what is overwritten now
    }
    const Term partial =
        s == 0 ? Term{x.in(left, offset), factor} : Term{x.scratch(left, (g + 1) % 2)};
    const Term own{x.in(x.rank(), offset), factor};
    std::byte* const to = last ? x.out(x.rank(), begin) : x.scratch(x.rank(), g % 2);
    x.move({static_cast<int>(g), left, x.rank(), c, offset, count, true},
           [&] { reduce_pair(op.reduction, op.dtype, to, partial, own, count); });
    if (last && op.reduction == Reduction::kAverage) {
      finish_average(op.dtype, to, count, n);
    }
    x.publish(g + 1);
  }
}

void reduce_scatter(Exchange& x) {
  const std::int64_t piece = kScratchBytes / 2 / x.bytes_of(1);
  std::uint64_t g = 0;
  for (std::int64_t begin = 0; begin < x.transfer().elements; begin += piece) {
    reduce_scatter_piece(x, begin, std::min(piece, x.transfer().elements - begin), g);
    g += static_cast<std::uint64_t>(x.size() - 1);
  }
  x.finish();
  x.end_steps(g);
}

}  // namespace

void run_ring(Exchange& x) {
  switch (x.transfer().collective) {
    case Collective::kAllReduce:
      return all_reduce(x);
    case Collective::kReduceScatter:
      return reduce_scatter(x);
    default:
      return all_gather(x);
  }
}

}  // namespace lockstep::exec
