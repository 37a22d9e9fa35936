// Tree: partial sums go up a binary tree, results come down; a logarithm of the members deep, so
// small messages arrive early. Members are numbered from the root: v = (rank - root) mod n; parent
// (v - 1) / 2, children 2 v + 1 and 2 v + 2.
//
// The message is cut into pieces of half the scratch. Going up, member v publishes p + 1 when its
// sum of piece p is ready for its parent; coming down, `pieces` + p + 1 when its output is. A
// member that keeps no sum (reduce) has it in scratch p % 2, and overwrites it after its parent's
// p.
#include <algorithm>
#include <bit>

#include "executor/algorithms.h"
#include "executor/reduce.h"

namespace lockstep::exec {

namespace {

class Tree {
 public:
  explicit Tree(Exchange& x)
      : x_(x),
        op_(x.transfer()),
        root_(op_.collective == Collective::kAllReduce ? 0 : op_.peer),
        v_((x.rank() - root_ + x.size()) % x.size()),
        parent_(rank_of((v_ - 1) / 2)),
        depth_(depth_of(x.size() - 1)),
        piece_(kScratchBytes / 2 / x.bytes_of(1)),
        pieces_((op_.elements + piece_ - 1) / piece_) {}

  void run() {
    if (op_.collective != Collective::kBroadcast) {
      for (std::int64_t p = 0; p < pieces_; ++p) {
        up(p);
      }
    }
    if (op_.collective != Collective::kReduce) {
      for (std::int64_t p = 0; p < pieces_; ++p) {
        down(p);
      }
    }
    x_.finish();
    x_.end_steps(2 * static_cast<std::uint64_t>(pieces_));
  }

 private:
  int rank_of(int v) const { return (v + root_) % x_.size(); }
  bool is_leaf(int v) const { return 2 * v + 1 >= x_.size(); }
  /// The cast is for libraries older than LWG 3656, where bit_width returns its argument's type.
  static int depth_of(int v) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(v) + 1)) - 1;
  }
  std::int64_t count_of(std::int64_t p) const {
    return std::min(piece_, op_.elements - p * piece_);
  }

  /// Where member v has its sum of piece p.
  std::byte* sum(int v, std::int64_t p) const {
    const bool in_output = v == 0 || op_.collective == Collective::kAllReduce;
    return in_output ? x_.out(rank_of(v), p * piece_)
                     : x_.scratch(rank_of(v), static_cast<std::uint64_t>(p) % 2);
  }

  void up(std::int64_t p) {
    const auto done = static_cast<std::uint64_t>(p) + 1;
    if (!is_leaf(v_)) {
      if (v_ != 0 && p >= 2) {
        x_.await(parent_, done - 2);
      }
      add_children(p, done);
    }
    if (v_ == 0 && op_.reduction == Reduction::kAverage) {
      finish_average(op_.dtype, sum(0, p), count_of(p), x_.size());
    }
    x_.publish(done);
  }

  void add_children(std::int64_t p, std::uint64_t done) {
    const double factor = factor_of_terms(op_.reduction, op_.dtype, x_.size());
    Term partial{x_.in(x_.rank(), p * piece_), factor};
    for (int child = 2 * v_ + 1; child <= 2 * v_ + 2 && child < x_.size(); ++child) {
      const int rank = rank_of(child);
      x_.await(rank, done);
      const Term theirs =
          is_leaf(child) ? Term{x_.in(rank, p * piece_), factor} : Term{sum(child, p)};
      x_.move(
          {depth_ - depth_of(child),
           rank,
           x_.rank(),
           static_cast<int>(p),
           p * piece_,
           count_of(p),
           true},
          [&] { reduce_pair(op_.reduction, op_.dtype, sum(v_, p), partial, theirs, count_of(p)); });
      partial = {sum(v_, p)};
    }
  }

  void down(std::int64_t p) {
    const auto done = static_cast<std::uint64_t>(pieces_ + p) + 1;
    const bool broadcast = op_.collective == Collective::kBroadcast;
    const std::int64_t bytes = x_.bytes_of(count_of(p));
    const std::int64_t offset = p * piece_;
    if (v_ != 0) {
      x_.await(parent_, done);
      const bool from_root_input = broadcast && parent_ == root_;
      const std::byte* const from =
          from_root_input ? x_.in(parent_, offset) : x_.out(parent_, offset);
      const int step = (broadcast ? 0 : depth_) + depth_of(v_) - 1;
      x_.move({step, parent_, x_.rank(), static_cast<int>(p), offset, count_of(p)},
              [&] { Exchange::copy(x_.out(x_.rank(), offset), from, bytes); });
    } else if (broadcast && x_.has_out(x_.rank())) {
      Exchange::copy(x_.out(x_.rank(), offset), x_.in(x_.rank(), offset), bytes);
    }
    x_.publish(done);
  }

  Exchange& x_;
  const Transfer& op_;
  const int root_;
  const int v_;
  const int parent_;
  const int depth_;  ///< of the deepest member
  const std::int64_t piece_;
  const std::int64_t pieces_;
};

}  // namespace

void run_tree(Exchange& exchange) {
  Tree(exchange).run();
}

}  // namespace lockstep::exec
