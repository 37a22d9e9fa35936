// What a Summarizer keeps, and by which keys: the pieces of segments and of stages, the models and
// schedules met. The keys name all that a piece depends on; everything else about a scenario may
// differ. Internal to summarizer.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <vector>

#include "core/model_graph.h"
#include "core/planner/mix.h"
#include "core/planner/stage_layout.h"
#include "core/planner/stage_walk.h"
#include "core/planner/step_sums.h"
#include "core/scenario.h"

namespace lockstep {

// ---- keys --------------------------------------------------------------------------------------

/// What a set of fragments depends on, packed.
struct Key {
  std::array<std::uint64_t, 10> words{};
  std::size_t count = 0;

  template <typename... Fields>
  void bytes(Fields... fields) {
    static_assert(sizeof...(fields) <= 8);
    std::uint64_t word = 0;
    ((word = (word << 8U) | (static_cast<std::uint64_t>(fields) & 0xffU)), ...);
    words[count++] = word;
  }
  void pair(std::int64_t a, std::int64_t b) {
    words[count++] = (static_cast<std::uint64_t>(a) << 32U) ^ static_cast<std::uint64_t>(b);
  }
  bool operator==(const Key&) const = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const {
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < key.count; ++i) {
      hash = mix(hash, key.words[i]);
    }
    return hash;
  }
};

// ---- what is kept ------------------------------------------------------------------------------

/// A kind of pipeline rank: ranks of one kind run the same pieces.
struct StageKind {
  bool embedding = false;
  bool head = false;
  std::int32_t blocks = 0;
  std::int32_t coordinate = 0;  ///< of the first rank of this kind
  bool operator==(const StageKind& other) const {
    return embedding == other.embedding && head == other.head && blocks == other.blocks &&
           (coordinate > 0) == (other.coordinate > 0);
  }
};

struct Stages {
  std::vector<StageKind> kinds;
  std::vector<std::int32_t> kind_of_rank;
  std::vector<StagePlace> places;  ///< by rank
};

struct Model {
  ModelSpec spec;
  AttentionKind attention = AttentionKind::kFlash;
  bool dropout = false;
  std::shared_ptr<const ModelGraph> graph;
  std::map<std::int64_t, Stages> stages;  ///< by pipeline degree
};

enum class Form : std::uint8_t { kEmbedding, kBlock, kHead };

/// Forward and backward of segments, batches and messages: what the batch decides.
struct SegmentPieces {
  using ByOrder = std::array<const Fragment*, kPieceOrderCount>;
  std::array<ByOrder, 3> forward{};
  std::array<ByOrder, 3> backward{};
  std::array<ByOrder, 4> microbatch{};  ///< by embedding + 2 * head
  std::array<const Fragment*, 4> messages{};
  using Orders = std::array<bool, kPieceOrderCount>;
  std::array<Orders, 3> known{};  ///< by form
  std::array<Orders, 4> known_batch{};
  std::array<bool, 4> known_messages{};
};

/// What the data-parallel kind and the optimizer do on a kind of stage.
struct StagePieces {
  bool known = false;
  std::array<bool, kPieceOrderCount> known_orders{};
  CategoryBytes at_start{};
  const Fragment* begin = nullptr;
  const Fragment* end = nullptr;
  using ByOrder = std::array<const Fragment*, kPieceOrderCount>;
  std::array<std::array<ByOrder, kPieceSlotCount>, 4> hooks{};
  ByOrder microbatch_end{};
};

/// Which ends of the model the stage has, as an index.
inline std::size_t ends_of(const StageKind& stage) {
  return (stage.embedding ? 1U : 0U) + (stage.head ? 2U : 0U);
}

/// Micro-batches whose passes come in all orders that `microbatches` have.
inline std::int64_t few(std::int64_t microbatches) {
  return std::min<std::int64_t>(microbatches, 3);
}

/// Whether body(order) is true for all orders of passes that so many micro-batches have.
template <typename Body>
bool all_orders(std::int64_t microbatches, Body&& body) {
  const auto count = static_cast<std::int32_t>(few(microbatches));
  for (std::int32_t done = 0; done < count; ++done) {
    if (!body(order_of(done, count))) {
      return false;
    }
  }
  return true;
}

constexpr std::size_t index(PieceOrder order) {
  return static_cast<std::size_t>(order);
}
constexpr std::size_t index(PieceSlot slot) {
  return static_cast<std::size_t>(slot);
}
constexpr std::size_t index(Form form) {
  return static_cast<std::size_t>(form);
}

inline Form form_of(PieceSlot slot) {
  return slot == PieceSlot::kEmbedding ? Form::kEmbedding
         : slot == PieceSlot::kHead    ? Form::kHead
                                       : Form::kBlock;
}

inline std::size_t hook_of(PieceKind kind) {
  return kind == PieceKind::kBeforeForward    ? 0
         : kind == PieceKind::kAfterForward   ? 1
         : kind == PieceKind::kBeforeBackward ? 2
                                              : 3;
}

/// Pieces that do not depend on how many blocks the stage has.
inline bool is_of_segment(PieceKind kind) {
  return kind == PieceKind::kForward || kind == PieceKind::kBackward ||
         kind == PieceKind::kMicrobatch ||
         (kind >= PieceKind::kSendForward && kind <= PieceKind::kRecvBackward);
}

struct Walks {
  Schedule schedule;
  std::vector<StageWalk> ranks;
  bool regular = true;
};

/// All that forward, backward, batch and boundary of a segment depend on.
Key segment_key(const Scenario& scenario, const StageKind& stage, std::int64_t model);
/// All that hooks, init and the end of a step depend on.
Key stage_key(const Scenario& scenario, const StageKind& stage, std::int64_t model);
/// Whether two models have the same graph, given attention and dropout.
bool same_transformer(const ModelSpec& a, const ModelSpec& b);
/// True when the pieces of the step are alike wherever their keys are.
bool is_composed(const Scenario& scenario);
/// Leaves one block: enough for the pieces of segments.
void drop_blocks(StageLayout& layout, const StageKind& stage);

}  // namespace lockstep
