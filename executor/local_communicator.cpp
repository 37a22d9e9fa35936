#include "executor/local_communicator.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/check.h"
#include "executor/algorithms.h"

namespace lockstep::exec {

namespace {

/// What a transfer must have whatever the others say.
void check_transfer(const Transfer& op, int size) {
  LOCKSTEP_CHECK(op.elements >= 0, fmt::format("{} of {} elements", name_of(op), op.elements));
  const bool message = op.kind != OperationKind::kCollective;
  const bool rooted = op.collective == Collective::kBroadcast ||
                      op.collective == Collective::kReduce ||
                      op.collective == Collective::kGather || op.collective == Collective::kScatter;
  if (message || rooted) {
    LOCKSTEP_CHECK(op.peer >= 0 && op.peer < size,
                   fmt::format("{} with member {} of {}", name_of(op), op.peer, size));
  }
  if (!message && op.collective == Collective::kAllToAll) {
    LOCKSTEP_CHECK(op.elements % size == 0,
                   fmt::format("all_to_all of {} elements among {}", op.elements, size));
    LOCKSTEP_CHECK(op.in != op.out || size == 1 || op.elements == 0, "all_to_all in place");
  }
}

Nanoseconds now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

}  // namespace

std::vector<std::unique_ptr<LocalCommunicator>> make_local_communicators(
    int ranks, const LocalOptions& options) {
  const auto world = std::make_shared<LocalWorld>(ranks, options);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  std::iota(members.begin(), members.end(), 0);
  const auto group = world->group({0, 0, 0}, members);
  std::vector<std::unique_ptr<LocalCommunicator>> communicators;
  communicators.reserve(members.size());
  for (const int rank : members) {
    communicators.push_back(std::make_unique<LocalCommunicator>(rank, group));
  }
  return communicators;
}

LocalCommunicator::LocalCommunicator(int rank, std::shared_ptr<LocalGroup> group)
    : Communicator(rank, group->members()), group_(std::move(group)) {
  group_->world().attach(turn_waker_);
}

LocalCommunicator::~LocalCommunicator() {
  group_->world().detach(turn_waker_);
}

void LocalCommunicator::abort(std::string_view reason) noexcept {
  group_->world().fail(group_->member(rank()), ErrorKind::kRankFailed, reason);
}

// ---- order -------------------------------------------------------------------------------------

void LocalCommunicator::execute(const Transfer& transfer, std::uint64_t sequence) {
  if (transfer.kind != OperationKind::kCollective) {
    return carry_out(transfer);
  }
  LocalWorld& world = group_->world();
  const auto my_turn = [&] { return turn_.load() == sequence; };
  // No deadline of its own: whatever is carried out before has one.
  turn_waker_.wait([&] { return my_turn() || world.failed(); });
  if (world.failed()) {
    world.throw_failure(group_->member(rank()), describe(transfer));
  }
  // Whether or not it fails, the next one's turn comes.
  struct Next {
    LocalCommunicator& self;
    ~Next() {
      self.turn_.fetch_add(1);
      self.turn_waker_.notify();
    }
  } const next{*this};
  carry_out(transfer);
}

void LocalCommunicator::carry_out(const Transfer& transfer) {
  check_transfer(transfer, size());
  if (transfer.times != nullptr) {
    transfer.times->arrived = transfer.times->started = now();
  }
  if (transfer.kind == OperationKind::kSend) {
    send(transfer);
  } else if (transfer.kind == OperationKind::kRecv) {
    recv(transfer);
  } else {
    collective(transfer);
  }
  if (transfer.times != nullptr) {
    transfer.times->ended = now();
  }
}

// ---- collectives -------------------------------------------------------------------------------

void LocalCommunicator::collective(const Transfer& transfer) {
  if (size() == 1) {
    return run_alone(transfer);
  }
  Transfer op = transfer;
  if (op.algorithm == Algorithm::kAuto) {
    op.algorithm = group_->world().options().algorithm;
  }
  Exchange exchange(*group_, rank(), op, counts_, moves_);
  const Algorithm algorithm = algorithm_for(op, op.algorithm);
  if (algorithm != Algorithm::kDirect) {
    exchange.make_scratch();
  }
  exchange.enter();
  if (op.times != nullptr) {
    op.times->started = now();
  }
  if (algorithm == Algorithm::kRing) {
    run_ring(exchange);
  } else if (algorithm == Algorithm::kTree) {
    run_tree(exchange);
  } else {
    run_direct(exchange);
  }
}

std::unique_ptr<Communicator> LocalCommunicator::split(int colour, int key) {
  struct Wish {
    std::int64_t colour;
    std::int64_t key;
    std::int64_t index;
  };
  std::vector<Wish> wishes(static_cast<std::size_t>(size()));
  const Wish mine{colour, key, rank()};
  collective({.collective = Collective::kAllGather,
              .dtype = DType::kInt64,
              .elements = 3,
              .in = &mine,
              .out = wishes.data()});
  std::erase_if(wishes, [colour](const Wish& wish) { return wish.colour != colour; });
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return std::pair(a.key, a.index) < std::pair(b.key, b.index);
  });
  std::vector<int> members;
  int index = -1;
  for (const Wish& wish : wishes) {
    if (wish.index == rank()) {
      index = static_cast<int>(members.size());
    }
    members.push_back(group_->member(static_cast<int>(wish.index)));
  }
  std::unique_ptr<Communicator> result;
  if (colour >= 0) {
    const LocalWorld::GroupName name{group_->number() + 1, splits_, colour};
    result = std::make_unique<LocalCommunicator>(index, group_->world().group(name, members));
  }
  ++splits_;
  // A member that dropped the group before another has found it would leave that one alone.
  collective({.collective = Collective::kBarrier});
  return result;
}

// ---- messages ----------------------------------------------------------------------------------

std::string LocalCommunicator::describe(const Transfer& message) const {
  if (message.kind == OperationKind::kCollective) {
    return std::string(name_of(message));
  }
  return fmt::format("{} {} rank {} of {} {}, tag {} (section {}, operation {})",
                     name_of(message),
                     message.kind == OperationKind::kSend ? "to" : "from",
                     group_->member(message.peer),
                     message.elements,
                     name_of(message.dtype),
                     message.tag,
                     message.label.section,
                     message.label.index);
}

void LocalCommunicator::throw_mismatch(const Transfer& message, const std::string& wrong) {
  const std::string text = fmt::format("rank {}: {} does not fit the other end: {}",
                                       group_->member(rank()),
                                       describe(message),
                                       wrong);
  group_->world().fail(group_->member(rank()), ErrorKind::kRankFailed, text);
  throw RankFailedError("communicator", text);
}

void LocalCommunicator::send(const Transfer& message) {
  LocalWorld& world = group_->world();
  const std::int64_t bytes = message.elements * size_of(message.dtype);
  const Clock::time_point begin = Clock::now();
  if (world.throttle().is_set()) {
    const int from = group_->member(rank());
    const int to = group_->member(message.peer);
    world.sleep_until(world.throttle().reserve(from, to, bytes, begin));
  }
  if (world.failed()) {
    world.throw_failure(group_->member(rank()), describe(message));
  }
  const std::string wrong = group_->mailbox(message.peer).put(rank(), message);
  if (!wrong.empty()) {
    throw_mismatch(message, wrong);
  }
}

void LocalCommunicator::recv(const Transfer& message) {
  LocalWorld& world = group_->world();
  Mailbox& mailbox = group_->mailbox(rank());
  Mailbox::Receiver receiver;
  receiver.source = message.peer;
  receiver.transfer = message;
  std::string wrong;
  const bool there = mailbox.take(receiver, wrong);
  if (!wrong.empty()) {
    throw_mismatch(message, wrong);
  }
  if (!there) {
    const auto done = [&] { return receiver.done.load(); };
    const auto timeout = world.options().timeout;
    mailbox.waker().wait([&] { return done() || world.failed(); }, Clock::now() + timeout);
    if (!done() && mailbox.withdraw(receiver)) {
      if (world.failed()) {
        world.throw_failure(group_->member(rank()), describe(message));
      }
      const std::string text = fmt::format("{} timed out after {} s: missing rank {}",
                                           describe(message),
                                           std::chrono::duration<double>(timeout).count(),
                                           group_->member(message.peer));
      world.fail(group_->member(rank()), ErrorKind::kTimeout, text);
      throw TimeoutError("communicator", fmt::format("rank {}: {}", group_->member(rank()), text));
    }
    mailbox.waker().wait(done);  // being written right now
  }
  if (message.times != nullptr) {
    message.times->started = now();
  }
}

}  // namespace lockstep::exec
