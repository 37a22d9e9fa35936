// CollectiveSteps: a recorded collective, step by step: what moves, and the set of ranks whose
// values are summed in every chunk of every rank. All of it follows from the moves that were
// really made; what the algorithm was meant to do is not known here, only what the collective owes.
//
//     const CollectiveSteps steps(record);
//     Holdings now = steps.begin();            // before step 0
//     steps.advance(now);                      // after it; step_back(now) undoes it
//     for (const StepMove& move : steps.steps()[0].moves) arrow(move.src, move.dst, move.chunk);
//     cell(rank, chunk, rank_set_text(now.at(rank, chunk), steps.ranks()));
//
// What it is not: a price of a collective (simulator), or a model of time: steps are the
// algorithm's, and ranks may be in different steps at the same time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/collective_record.h"

namespace lockstep::view {

/// Bit r: the values of rank r are in the sum.
using RankSet = std::uint64_t;
constexpr RankSet set_of(int rank) {
  return RankSet{1} << static_cast<unsigned>(rank);
}
constexpr RankSet all_of(int ranks) {
  return ranks >= 64 ? ~RankSet{0} : set_of(ranks) - 1;
}

/// "all", "0-2,5", "." for nothing.
std::string rank_set_text(RankSet set, int ranks);

/// A part of the message that moves as one piece; in order of the message.
struct StepChunk {
  std::int64_t begin = 0;  ///< bytes
  std::int64_t bytes = 0;
  std::int32_t number = 0;  ///< the algorithm's
  std::int32_t owner = -1;  ///< sharded collectives: the rank whose shard it lies in
};

struct StepMove {
  std::int32_t src = 0;
  std::int32_t dst = 0;
  std::int32_t chunk = -1;  ///< index into chunks(); -1: nothing was in it
  std::int64_t bytes = 0;
  bool reduces = false;
  RankSet before = 0;  ///< what dst held
  RankSet after = 0;
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
};

struct CollectiveStep {
  std::vector<StepMove> moves;  ///< by receiver
  bool reduces = false;         ///< at least one of them does
  Nanoseconds begin = 0;        ///< of the first move
  Nanoseconds end = 0;          ///< of the last
};

/// What every rank holds after `steps_done` steps.
struct Holdings {
  std::int32_t steps_done = 0;
  std::int32_t chunks = 0;
  std::vector<RankSet> sets;  ///< by rank, then chunk
  RankSet at(int rank, int chunk) const { return sets[index(rank, chunk)]; }
  std::size_t index(int rank, int chunk) const {
    return static_cast<std::size_t>(rank) * static_cast<std::size_t>(chunks) +
           static_cast<std::size_t>(chunk);
  }
};

class CollectiveSteps {
 public:
  /// BadInputError for ranks that do not exist and chunks that overlap in part.
  explicit CollectiveSteps(const CollectiveRecord& record);

  int ranks() const { return head_.ranks; }
  /// Without its moves.
  const CollectiveRecord& head() const { return head_; }
  const std::vector<StepChunk>& chunks() const { return chunks_; }
  const std::vector<CollectiveStep>& steps() const { return steps_; }
  /// Steps at which a phase begins: where adding gives way to passing on, or the other way round.
  const std::vector<std::int32_t>& phases() const { return phases_; }

  Holdings begin() const { return first_; }
  Holdings holdings(int steps_done) const;
  /// One step on or back; false at the end and at the beginning. Costs what the step moves.
  bool advance(Holdings& holdings) const;
  bool step_back(Holdings& holdings) const;

  std::int64_t sent_bytes(int rank) const { return sent_[static_cast<std::size_t>(rank)]; }
  std::int64_t received_bytes(int rank) const { return received_[static_cast<std::size_t>(rank)]; }
  std::int64_t sent_in(int step, int rank) const;

  /// What a rank must hold of a chunk at the end; 0: nobody asks.
  RankSet owed(int rank, int chunk) const;
  /// Why the moves do not make the collective, in words; empty when they do.
  const std::vector<std::string>& problems() const { return problems_; }

 private:
  void cut_chunks(const CollectiveRecord& record);
  RankSet first_set(int rank, const StepChunk& chunk) const;
  void add_step(const std::vector<const ChunkMove*>& moves, Holdings& now);
  void check_end(const Holdings& last);
  std::int32_t chunk_at(std::int64_t begin) const;

  CollectiveRecord head_;
  std::vector<StepChunk> chunks_;
  std::vector<CollectiveStep> steps_;
  std::vector<std::int32_t> phases_;
  Holdings first_;
  std::vector<std::int64_t> sent_;
  std::vector<std::int64_t> received_;
  std::vector<std::string> problems_;
};

}  // namespace lockstep::view
