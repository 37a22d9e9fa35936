// ProgramTree: random programs for ProgramBuilder as data, so that the same program can be run by
// two builders. A tree keeps to the conditions of repeat, repeat_reverse and once_per: loops in
// loops, fragments in loops, loops in fragments, buffers that outlive their run, and first and last
// runs that do more than the others.
//
//     const Tree tree = TreeGenerator(seed).tree();
//     TreeInterpreter(builder, tree).run();
#pragma once

#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/planner/program_builder.h"

namespace lockstep::test {

enum class When { kAlways, kFirst, kMiddle, kLast };

struct Node {
  enum Kind { kOperation, kTemporary, kKeep, kRelease, kRepeat, kOnce };
  Kind kind = kOperation;
  int number = 0;  ///< operation: what it does; keep, release: which store; once: which fragment
  std::int64_t elements = 0;
  When when = When::kAlways;
  std::int64_t count = 0;  ///< repeat
  bool reverse = false;
  Place step{0, 0};  ///< repeat: how far one index moves module and micro-batch
  std::vector<Node> children;
};

struct Tree {
  std::vector<Node> root;
  std::vector<std::vector<Node>> fragments;
};

// ---- running a tree ----------------------------------------------------------------------------

class TreeInterpreter {
 public:
  TreeInterpreter(ProgramBuilder& builder, const Tree& tree) : b_(builder), tree_(tree) {}

  void run() {
    if (scratch_ == kNoBuffer) {
      scratch_ =
          b_.alloc(Category::kParameter, DType::kFp32, 64, {.lifetime = Lifetime::kPersistent});
    }
    run(tree_.root);
  }

 private:
  struct Index {
    std::int64_t value = 0;
    std::int64_t count = 0;
  };

  void run(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (due(node.when)) {
        run(node);
      }
    }
  }
  bool due(When when) const {
    if (when == When::kAlways) {
      return true;
    }
    const Index& index = path_.back();
    const bool first = index.value == 0;
    const bool last = index.value == index.count - 1;
    return when == When::kFirst ? first : when == When::kLast ? last : !first && !last;
  }
  void run(const Node& node) {
    switch (node.kind) {
      case Node::kOperation:
        return operation(node.number);
      case Node::kTemporary: {
        const BufferId id = allocate(node);
        run(node.children);
        b_.free(id);
        return;
      }
      case Node::kKeep:
        stores_[key(node)].push_back(allocate(node));
        return;
      case Node::kRelease: {
        std::vector<BufferId>& store = stores_[key(node)];
        b_.free(store.back());
        store.pop_back();
        return;
      }
      case Node::kRepeat:
        return loop(node);
      case Node::kOnce: {
        // What a fragment keeps is stored by fragment: runs that are replayed store nothing.
        const Place place = place_;
        b_.once_per(static_cast<std::uint64_t>(node.number), place, [&] {
          const std::vector<Index> path = std::exchange(path_, {});
          run(tree_.fragments[static_cast<std::size_t>(node.number)]);
          path_ = path;
        });
        return;
      }
    }
  }
  void loop(const Node& node) {
    const auto body = [&](std::int64_t i) {
      const Place before = place_;
      place_.module += static_cast<std::uint32_t>(i) * node.step.module;
      place_.microbatch += static_cast<std::int32_t>(i) * node.step.microbatch;
      path_.push_back({i, node.count});
      run(node.children);
      path_.pop_back();
      place_ = before;
    };
    if (node.reverse) {
      b_.repeat_reverse(node.count, body);
    } else {
      b_.repeat(node.count, body);
    }
  }
  BufferId allocate(const Node& node) {
    AllocOptions options;
    options.storage = node.number % 7 == 0 ? Storage::kHost : Storage::kDevice;
    return b_.alloc(static_cast<Category>(node.number % kCategoryCount),
                    node.number % 2 == 0 ? DType::kFp32 : DType::kBf16,
                    node.elements,
                    options);
  }
  std::vector<std::int64_t> key(const Node& node) const {
    std::vector<std::int64_t> slots{node.number};
    for (const Index& index : path_) {
      slots.push_back(b_.slot(index.value, index.count));
    }
    return slots;
  }
  void operation(int number) {
    const bool placeless = number % 5 == 0;
    b_.at(static_cast<Phase>(number % 11),
          placeless ? kNoModule : place_.module + static_cast<std::uint32_t>(number % 3),
          place_.microbatch);
    const View view = ProgramBuilder::range(scratch_, 0, 1 + number % 3);
    const std::uint8_t group = b_.tables().communicator(mask_of(Axis::kData));
    switch (number % 4) {
      case 0:
        b_.collective(Collective::kAllReduce,
                      group,
                      Reduction::kSum,
                      view.elements,
                      view,
                      view,
                      {.stream = Stream::kData,
                       .flags = static_cast<std::uint16_t>(number % 8 == 0 ? kControl : 0)});
        return;
      case 1:
        b_.send(group, 1, static_cast<std::uint32_t>(number), view);
        return;
      case 2:
        b_.host(Work::kReadScalar, Shape{{number % 2}}, {view});
        return;
      default:
        b_.compute(static_cast<Work>(number % 30), Shape{{number % 3, 1}}, {view}, {view});
    }
  }

  ProgramBuilder& b_;
  const Tree& tree_;
  Place place_{100'000, 5'000};
  std::vector<Index> path_;
  std::map<std::vector<std::int64_t>, std::vector<BufferId>> stores_;
  BufferId scratch_ = kNoBuffer;
};

// ---- making a tree -----------------------------------------------------------------------------

class TreeGenerator {
 public:
  explicit TreeGenerator(std::uint64_t seed) : random_(seed) {}

  Tree tree() {
    const auto fragments = static_cast<int>(pick(1, 4));
    for (int f = 0; f < fragments; ++f) {
      fragments_ = f;  // fragments may contain fragments of lower number
      tree_.fragments.push_back(nodes(2));
    }
    // Two more: one keeps a buffer, one gives it back, as forward and backward of a stage do.
    keeper_ = static_cast<int>(tree_.fragments.size());
    Node keep = leaf(Node::kKeep);
    keep.number = 70'001 + static_cast<int>(pick(0, 8));
    Node release = keep;
    release.kind = Node::kRelease;
    tree_.fragments.push_back(mixed(keep, 1));
    tree_.fragments.push_back(mixed(release, 1));
    fragments_ = fragments;
    tree_.root = nodes(3);
    append(tree_.root, balanced());
    append(tree_.root, nodes(2));
    return std::move(tree_);
  }

 private:
  std::int64_t pick(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  static void append(std::vector<Node>& to, std::vector<Node> from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  Node leaf(Node::Kind kind) {
    Node node;
    node.kind = kind;
    node.number = static_cast<int>(pick(1, 200));
    node.elements = pick(0, 40);
    return node;
  }
  /// An operation with a module: what every run begins with, so that it says where it stands.
  Node marker() {
    Node node = leaf(Node::kOperation);
    node.number += node.number % 5 == 0 ? 1 : 0;
    return node;
  }
  Node repeat(int depth) {
    Node node;
    node.kind = Node::kRepeat;
    node.count = pick(0, 7);
    node.reverse = pick(0, 1) == 1;
    node.step = {static_cast<std::uint32_t>(pick(0, 3)), static_cast<std::int32_t>(pick(-1, 2))};
    if (pick(0, 3) == 0) {
      node.children.push_back(leaf(Node::kOperation));
    }
    node.children.push_back(marker());
    append(node.children, nodes(depth - 1));
    for (Node& child : node.children) {
      const bool simple = child.kind == Node::kOperation || child.kind == Node::kTemporary;
      if (simple && &child != &node.children.front() && pick(0, 3) == 0) {
        child.when = static_cast<When>(pick(0, 3));
      }
    }
    // The mark stays in every run.
    node.children[node.children[0].number % 5 == 0 ? 1 : 0].when = When::kAlways;
    return node;
  }
  std::vector<Node> mixed(const Node& node, int depth) {
    std::vector<Node> result = nodes(depth);
    result.insert(result.begin() + pick(0, static_cast<std::int64_t>(result.size())), node);
    return result;
  }
  /// Loops that keep buffers and, later, loops of the same shape that give them back.
  std::vector<Node> kept_and_released(int depth) {
    Node keeping = repeat(depth);
    Node releasing = repeat(depth);
    releasing.count = keeping.count;
    Node keep = leaf(Node::kKeep);
    keep.number = store_++;
    keep.when = pick(0, 3) == 0 ? static_cast<When>(pick(0, 3)) : When::kAlways;
    Node release = keep;
    release.kind = Node::kRelease;
    const auto insert = [&](Node& loop, const Node& node) {
      // Behind the mark, or at the end.
      loop.children.insert(pick(0, 1) == 0 ? loop.children.end() : loop.children.begin() + 2, node);
    };
    keeping.children.push_back(leaf(Node::kOperation));
    releasing.children.push_back(leaf(Node::kOperation));
    insert(keeping, keep);
    insert(releasing, release);
    std::vector<Node> result{keeping};
    append(result, nodes(depth - 1));
    result.push_back(releasing);
    return result;
  }
  std::vector<Node> nodes(int depth) {
    std::vector<Node> result;
    const std::int64_t count = pick(0, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t what = depth <= 0 ? pick(0, 2) : pick(0, 9);
      if (what <= 2) {
        result.push_back(leaf(Node::kOperation));
      } else if (what <= 4) {
        Node node = leaf(Node::kTemporary);
        node.children = nodes(depth - 1);
        result.push_back(node);
      } else if (what <= 6) {
        result.push_back(repeat(depth));
      } else if (what == 7) {
        append(result, kept_and_released(depth));
      } else if (fragments_ > 0) {
        Node node = leaf(Node::kOnce);
        node.number = static_cast<int>(pick(0, fragments_ - 1));
        result.push_back(node);
      }
    }
    return result;
  }
  /// Runs of the keeper and of the giver-back: never more of the second, as many in the end.
  std::vector<Node> balanced() {
    std::vector<Node> result;
    std::int64_t kept = 0;
    const auto call = [&](int fragment, std::int64_t times) {
      Node once = leaf(Node::kOnce);
      once.number = fragment;
      Node loop;
      loop.kind = Node::kRepeat;
      loop.count = times;
      loop.step = {0, 1};
      loop.children = {marker(), once};
      result.push_back(loop);
    };
    for (std::int64_t round = pick(1, 4); round > 0; --round) {
      const std::int64_t more = pick(1, 5);
      call(keeper_, more);
      kept += more;
      const std::int64_t back = round == 1 ? kept : pick(0, kept);
      call(keeper_ + 1, back);
      kept -= back;
      append(result, nodes(1));
    }
    return result;
  }

  std::mt19937_64 random_;
  Tree tree_;
  int fragments_ = 0;
  int keeper_ = 0;
  int store_ = 10'000;
};

}  // namespace lockstep::test
