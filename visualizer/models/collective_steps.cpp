#include "visualizer/models/collective_steps.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/error.h"

namespace lockstep::view {
namespace {

constexpr int kMostRanks = 64;  // bits of a RankSet
constexpr std::size_t kMostProblems = 20;

}  // namespace

std::string rank_set_text(RankSet set, int ranks) {
  if (set == 0) {
    return ".";
  }
  if (set == all_of(ranks) && ranks > 1) {
    return "all";
  }
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    if ((set & set_of(rank)) == 0) {
      continue;
    }
    int last = rank;
    while (last + 1 < ranks && (set & set_of(last + 1)) != 0) {
      ++last;
    }
    text += text.empty() ? "" : ",";
    text += last == rank       ? fmt::format("{}", rank)
            : last == rank + 1 ? fmt::format("{},{}", rank, last)
                               : fmt::format("{}-{}", rank, last);
    rank = last;
  }
  return text;
}

CollectiveSteps::CollectiveSteps(const CollectiveRecord& record)
    : head_(record),
      sent_(static_cast<std::size_t>(std::max(record.ranks, 0))),
      received_(sent_.size()) {
  head_.moves.clear();
  if (record.ranks < 1 || record.ranks > kMostRanks) {
    throw BadInputError("collective", fmt::format("{} ranks", record.ranks));
  }
  for (const ChunkMove& move : record.moves) {
    const auto exists = [&](int rank) { return rank >= 0 && rank < record.ranks; };
    if (!exists(move.src) || !exists(move.dst)) {
      throw BadInputError(
          "collective",
          fmt::format("a move from rank {} to rank {} of {}", move.src, move.dst, record.ranks));
    }
  }
  cut_chunks(record);
  first_.chunks = static_cast<std::int32_t>(chunks_.size());
  for (int rank = 0; rank < record.ranks; ++rank) {
    for (const StepChunk& chunk : chunks_) {
      first_.sets.push_back(first_set(rank, chunk));
    }
  }
  std::map<std::int32_t, std::vector<const ChunkMove*>> by_step;
  for (const ChunkMove& move : record.moves) {
    by_step[move.step].push_back(&move);
  }
  Holdings now = first_;
  for (const auto& [step, moves] : by_step) {
    add_step(moves, now);
  }
  check_end(now);
}

/// Whatever moved at any time as one piece is a chunk; where nothing moved, the whole message.
void CollectiveSteps::cut_chunks(const CollectiveRecord& record) {
  std::map<std::int64_t, StepChunk> by_begin;
  for (const ChunkMove& move : record.moves) {
    if (move.bytes == 0) {
      continue;
    }
    const auto entry =
        by_begin.try_emplace(move.begin, StepChunk{move.begin, move.bytes, move.chunk, -1});
    if (entry.first->second.bytes != move.bytes) {
      throw BadInputError("collective",
                          fmt::format("chunks of {} and of {} bytes begin at byte {}",
                                      entry.first->second.bytes,
                                      move.bytes,
                                      move.begin));
    }
  }
  const std::int64_t shard = head_.message_bytes / head_.ranks;
  std::int64_t end = 0;
  for (const auto& [begin, chunk] : by_begin) {
    if (begin < end) {
      throw BadInputError("collective", fmt::format("two chunks hold byte {}", begin));
    }
    end = begin + chunk.bytes;
    chunks_.push_back(chunk);
  }
  if (chunks_.empty() && head_.message_bytes > 0) {
    chunks_.push_back({0, head_.message_bytes, 0, -1});
  }
  for (StepChunk& chunk : chunks_) {
    if (head_.is_sharded() && shard > 0) {
      chunk.owner = static_cast<std::int32_t>(chunk.begin / shard);
    }
  }
}

std::int32_t CollectiveSteps::chunk_at(std::int64_t begin) const {
  const auto found =
      std::lower_bound(chunks_.begin(), chunks_.end(), begin, [](const StepChunk& chunk, auto at) {
        return chunk.begin < at;
      });
  return static_cast<std::int32_t>(found - chunks_.begin());
}

RankSet CollectiveSteps::first_set(int rank, const StepChunk& chunk) const {
  const bool gathers = head_.collective == Collective::kAllGather;
  const bool broadcasts = head_.collective == Collective::kBroadcast;
  const bool has = gathers ? chunk.owner == rank : !broadcasts || rank == head_.root;
  return has ? set_of(rank) : 0;
}

RankSet CollectiveSteps::owed(int rank, int chunk) const {
  const StepChunk& it = chunks_[static_cast<std::size_t>(chunk)];
  switch (head_.collective) {
    case Collective::kAllGather:
      return set_of(it.owner);
    case Collective::kBroadcast:
      return set_of(head_.root);
    case Collective::kReduce:
      return rank == head_.root ? all_of(head_.ranks) : 0;
    case Collective::kReduceScatter:
      return rank == it.owner ? all_of(head_.ranks) : 0;
    default:
      return all_of(head_.ranks);
  }
}

/// What is read in a step was there before it; what comes to one chunk of one rank comes in turn.
void CollectiveSteps::add_step(const std::vector<const ChunkMove*>& moves, Holdings& now) {
  const auto number = static_cast<int>(steps_.size());
  CollectiveStep& step = steps_.emplace_back();
  const std::vector<RankSet> before = now.sets;
  const auto report = [&](std::string text) {
    if (problems_.size() < kMostProblems) {
      problems_.push_back(std::move(text));
    }
  };
  for (const ChunkMove* move : moves) {
    StepMove it;
    it.src = move->src;
    it.dst = move->dst;
    it.bytes = move->bytes;
    it.reduces = move->reduces;
    it.begin = move->t0;
    it.end = move->t1;
    step.begin = step.moves.empty() ? it.begin : std::min(step.begin, it.begin);
    step.end = std::max(step.end, it.end);
    step.reduces = step.reduces || it.reduces;
    sent_[static_cast<std::size_t>(it.src)] += it.bytes;
    received_[static_cast<std::size_t>(it.dst)] += it.bytes;
    if (it.bytes > 0) {
      it.chunk = chunk_at(move->begin);
      const RankSet carried = before[now.index(it.src, it.chunk)];
      RankSet& held = now.sets[now.index(it.dst, it.chunk)];
      it.before = held;
      it.after = it.reduces ? held | carried : carried;
      if (carried == 0) {
        report(fmt::format("step {}: rank {} sends chunk {}, of which it holds nothing",
                           number,
                           it.src,
                           it.chunk));
      }
      if (it.reduces && (held & carried) != 0) {
        report(fmt::format("step {}: rank {} adds rank {} to chunk {} a second time",
                           number,
                           it.dst,
                           rank_set_text(held & carried, head_.ranks),
                           it.chunk));
      }
      held = it.after;
    }
    step.moves.push_back(it);
  }
  if (number == 0 || step.reduces != steps_[static_cast<std::size_t>(number) - 1].reduces) {
    phases_.push_back(number);
  }
}

void CollectiveSteps::check_end(const Holdings& last) {
  for (int rank = 0; rank < head_.ranks; ++rank) {
    for (int chunk = 0; chunk < last.chunks && problems_.size() < kMostProblems; ++chunk) {
      const RankSet wanted = owed(rank, chunk);
      if (wanted != 0 && last.at(rank, chunk) != wanted) {
        problems_.push_back(fmt::format("rank {} ends with {} in chunk {} instead of {}",
                                        rank,
                                        rank_set_text(last.at(rank, chunk), head_.ranks),
                                        chunk,
                                        rank_set_text(wanted, head_.ranks)));
      }
    }
  }
}

Holdings CollectiveSteps::holdings(int steps_done) const {
  Holdings now = first_;
  while (now.steps_done < steps_done && advance(now)) {
  }
  return now;
}

bool CollectiveSteps::advance(Holdings& holdings) const {
  if (static_cast<std::size_t>(holdings.steps_done) >= steps_.size()) {
    return false;
  }
  for (const StepMove& move : steps_[static_cast<std::size_t>(holdings.steps_done)].moves) {
    if (move.chunk >= 0) {
      holdings.sets[holdings.index(move.dst, move.chunk)] = move.after;
    }
  }
  ++holdings.steps_done;
  return true;
}

bool CollectiveSteps::step_back(Holdings& holdings) const {
  if (holdings.steps_done == 0) {
    return false;
  }
  --holdings.steps_done;
  const auto& moves = steps_[static_cast<std::size_t>(holdings.steps_done)].moves;
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    if (move->chunk >= 0) {
      holdings.sets[holdings.index(move->dst, move->chunk)] = move->before;
    }
  }
  return true;
}

std::int64_t CollectiveSteps::sent_in(int step, int rank) const {
  std::int64_t bytes = 0;
  for (const StepMove& move : steps_[static_cast<std::size_t>(step)].moves) {
    bytes += move.src == rank ? move.bytes : 0;
  }
  return bytes;
}

}  // namespace lockstep::view
