// How a collective moves its data: direct, ring, tree. Each function is one member's part, between
// Exchange::enter() and the return to the caller. Sums are in a fixed order, whoever comes first:
//   direct  x0 + x1 + x2 + ...                      for every element, rounded once
//   ring    chunk c: x(c) + x(c+1) + ... around the ring, rounded at every step (reduce_scatter
//           ends, all_reduce begins its chunk c at member c)
//   tree    (x(v) + left subtree) + right subtree, in a binary heap, rounded at every step
// So direct gives all_reduce, reduce_scatter and reduce the same bits, and cuts of a message into
// buckets do not matter; ring and tree show what networks do.
#pragma once

#include "executor/exchange.h"

namespace lockstep::exec {

/// The algorithm that will carry `transfer` out when `requested` is asked for: rings know
/// all_reduce, reduce_scatter and all_gather, trees all_reduce, reduce and broadcast; direct knows
/// all.
Algorithm algorithm_for(const Transfer& transfer, Algorithm requested);

void run_direct(Exchange& x);
void run_ring(Exchange& x);
void run_tree(Exchange& exchange);

/// A group of one: input to output.
void run_alone(const Transfer& transfer);

}  // namespace lockstep::exec
