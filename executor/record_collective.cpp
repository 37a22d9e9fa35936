#include "executor/record_collective.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "executor/algorithms.h"
#include "executor/local_communicator.h"
#include "executor/typed_value.h"

namespace lockstep::exec {
namespace {

/// 1 to 15, so that 16 of them make at most 240: exact in every type of elements.
double value_of(int rank, std::int64_t element) {
  return static_cast<double>((element + std::int64_t{4} * rank) % 15 + 1);
}

/// One collective with the buffers of all its ranks.
class Recording {
 public:
  explicit Recording(const RecordedCollective& wanted)
      : wanted_(wanted),
        shard_((wanted.elements + wanted.ranks - 1) / wanted.ranks),
        communicators_(make_local_communicators(wanted.ranks, {.record_moves = true})),
        in_(communicators_.size()),
        out_(communicators_.size()),
        times_(communicators_.size()) {}

  CollectiveRecord run() {
    for (int round = 0; round < 2; ++round) {  // the first warms memory and threads up
      prepare();
      carry_out();
      check();
    }
    return record();
  }

 private:
  bool gathers() const { return wanted_.collective == Collective::kAllGather; }
  bool scatters() const { return wanted_.collective == Collective::kReduceScatter; }
  std::int64_t message() const {
    return gathers() || scatters() ? shard_ * wanted_.ranks : wanted_.elements;
  }
  std::int64_t inputs() const { return gathers() ? shard_ : message(); }
  std::int64_t outputs() const { return scatters() ? shard_ : message(); }

  void prepare() {
    const auto size = static_cast<std::size_t>(size_of(wanted_.dtype));
    for (int rank = 0; rank < wanted_.ranks; ++rank) {
      const auto at = static_cast<std::size_t>(rank);
      in_[at].assign(static_cast<std::size_t>(inputs()) * size, std::byte{0});
      out_[at].assign(static_cast<std::size_t>(outputs()) * size, std::byte{0});
      for (std::int64_t i = 0; i < inputs(); ++i) {
        write_value(wanted_.dtype,
                    in_[at].data() + static_cast<std::size_t>(i) * size,
                    value_of(rank, i + (gathers() ? rank * shard_ : 0)));
      }
    }
  }

  void run_rank(std::size_t rank) {
    LocalCommunicator& communicator = *communicators_[rank];
    communicator.forget_moves();
    const bool rooted =
        wanted_.collective == Collective::kBroadcast || wanted_.collective == Collective::kReduce;
    const bool sums = !gathers() && wanted_.collective != Collective::kBroadcast;
    communicator.run({.collective = wanted_.collective,
                      .reduction = sums ? Reduction::kSum : Reduction::kNone,
                      .dtype = wanted_.dtype,
                      .algorithm = wanted_.algorithm,
                      .peer = static_cast<std::int16_t>(rooted ? wanted_.root : -1),
                      .elements = gathers() || scatters() ? shard_ : wanted_.elements,
                      .in = in_[rank].data(),
                      .out = out_[rank].data(),
                      .times = &times_[rank]});
  }

  void carry_out() {
    std::vector<std::exception_ptr> errors(communicators_.size());
    std::vector<std::thread> threads;
    threads.reserve(communicators_.size());
    for (std::size_t rank = 0; rank < communicators_.size(); ++rank) {
      threads.emplace_back([this, &errors, rank] {
        try {
          run_rank(rank);
        } catch (const std::exception& error) {
          errors[rank] = std::current_exception();
          communicators_[rank]->abort(error.what());
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const std::exception_ptr& error : errors) {
      if (error != nullptr) {
        std::rethrow_exception(error);
      }
    }
  }

  double expected(int rank, std::int64_t element) const {
    if (gathers()) {
      return value_of(static_cast<int>(element / shard_), element);
    }
    if (wanted_.collective == Collective::kBroadcast) {
      return value_of(wanted_.root, element);
    }
    const std::int64_t at = element + (scatters() ? rank * shard_ : 0);
    double sum = 0;
    for (int term = 0; term < wanted_.ranks; ++term) {
      sum += value_of(term, at);
    }
    return sum;
  }

  void check() const {
    const auto size = static_cast<std::size_t>(size_of(wanted_.dtype));
    for (int rank = 0; rank < wanted_.ranks; ++rank) {
      if (wanted_.collective == Collective::kReduce && rank != wanted_.root) {
        continue;
      }
      for (std::int64_t i = 0; i < outputs(); ++i) {
        const double found = read_value(
            wanted_.dtype,
            out_[static_cast<std::size_t>(rank)].data() + static_cast<std::size_t>(i) * size);
        if (found != expected(rank, i)) {
          throw CheckFailedError(
              "collective",
              fmt::format(
                  "rank {}, element {}: {} instead of {}", rank, i, found, expected(rank, i)));
        }
      }
    }
  }

  CollectiveRecord record() const {
    CollectiveRecord record;
    record.collective = wanted_.collective;
    record.algorithm = name_of(wanted_.algorithm);
    record.dtype = wanted_.dtype;
    record.ranks = wanted_.ranks;
    record.root = wanted_.root;
    record.message_bytes = message() * size_of(wanted_.dtype);
    // All were there when the last one was.
    Nanoseconds begin = times_.front().arrived;
    for (const TransferTimes& times : times_) {
      begin = std::max(begin, times.arrived);
    }
    for (const TransferTimes& times : times_) {
      record.time = std::max(record.time, times.ended - begin);
    }
    for (const auto& communicator : communicators_) {
      for (ChunkMove move : communicator->moves()) {
        move.t0 -= begin;
        move.t1 -= begin;
        record.moves.push_back(move);
      }
    }
    std::stable_sort(
        record.moves.begin(), record.moves.end(), [](const ChunkMove& a, const ChunkMove& b) {
          return std::tie(a.step, a.dst) < std::tie(b.step, b.dst);
        });
    return record;
  }

  const RecordedCollective wanted_;
  const std::int64_t shard_;
  std::vector<std::unique_ptr<LocalCommunicator>> communicators_;
  std::vector<std::vector<std::byte>> in_;
  std::vector<std::vector<std::byte>> out_;
  std::vector<TransferTimes> times_;
};

bool is_recorded(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
    case Collective::kReduceScatter:
    case Collective::kAllGather:
    case Collective::kBroadcast:
    case Collective::kReduce:
      return true;
    default:
      return false;
  }
}

}  // namespace

CollectiveRecord record_collective(const RecordedCollective& wanted) {
  if (!is_recorded(wanted.collective)) {
    throw UsageError("collective",
                     fmt::format("{} has no steps to look at", name_of(wanted.collective)));
  }
  if (!is_floating(wanted.dtype)) {
    throw UsageError("collective",
                     fmt::format("no floating-point type: {}", name_of(wanted.dtype)));
  }
  const Transfer transfer{.collective = wanted.collective};
  if (algorithm_for(transfer, wanted.algorithm) != wanted.algorithm) {
    throw UsageError("collective",
                     fmt::format("a {} cannot carry out {}: rings know all_reduce, "
                                 "reduce_scatter and all_gather, trees all_reduce, reduce and "
                                 "broadcast, direct all of them",
                                 name_of(wanted.algorithm),
                                 name_of(wanted.collective)));
  }
  if (wanted.ranks < 1 || wanted.ranks > kMostRecordedRanks || wanted.elements < 1 ||
      wanted.root < 0 || wanted.root >= wanted.ranks) {
    throw UsageError("collective",
                     fmt::format("{} ranks, root {}, {} elements: ranks go from 1 to {}, the root "
                                 "is one of them, and there is something to send",
                                 wanted.ranks,
                                 wanted.root,
                                 wanted.elements,
                                 kMostRecordedRanks));
  }
  return Recording(wanted).run();
}

}  // namespace lockstep::exec
