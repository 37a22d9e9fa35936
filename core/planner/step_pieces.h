// What a Summarizer keeps, and by which keys: the pieces of segments and of stages, the models and
// schedules met. The keys name all that a piece depends on; everything else about a scenario may
// differ. Internal to the Summarizer.
#pragma once

#include <array>
#include <memory>
#include <span>
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

  void word(std::uint64_t value) { words[count++] = value; }
  template <typename... Fields>
  void bytes(Fields... fields) {
    static_assert(sizeof...(fields) <= 8);
    std::uint64_t packed = 0;
    ((packed = (packed << 8U) | (static_cast<std::uint64_t>(fields) & 0xffU)), ...);
    word(packed);
  }
  void pair(std::int64_t a, std::int64_t b) {
    word((static_cast<std::uint64_t>(a) << 32U) ^ static_cast<std::uint64_t>(b));
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

// ---- stages ------------------------------------------------------------------------------------

/// The part of a model in one chunk.
struct ChunkForm {
  bool embedding = false;
  bool head = false;
  std::int32_t blocks = 0;
  bool operator==(const ChunkForm&) const = default;
  std::size_t segments() const {
    return static_cast<std::size_t>(blocks) + (embedding ? 1U : 0U) + (head ? 1U : 0U);
  }
};

/// What a pipeline rank holds: ranks of one form run the same pieces.
struct StageForm {
  std::vector<ChunkForm> chunks;
  bool behind_first = false;  ///< not the first pipeline rank
  bool turns = false;         ///< passes on to its own next chunk, without a message
  bool operator==(const StageForm&) const = default;
};

/// A form, and which of its blocks are recomputed when only every k-th layer is.
struct StageKind {
  std::int64_t form = 0;                  ///< number in Model::forms
  std::vector<std::int32_t> first_layer;  ///< by chunk, modulo k
  std::int32_t coordinate = 0;            ///< of the first rank of this kind
};

/// How layers are dealt out to pipeline ranks.
struct Stages {
  std::int64_t degree = 1;
  std::int64_t chunks = 1;
  bool turns = false;  ///< as a V
  std::int64_t every = 1;
  std::vector<std::int64_t> layers_per_stage;

  std::vector<StageKind> kinds;
  std::vector<std::size_t> kind_of_rank;
  std::vector<StagePlace> places;  ///< by rank
};

struct Model {
  ModelSpec spec;
  AttentionKind attention = AttentionKind::kFlash;
  bool dropout = false;
  std::shared_ptr<const ModelGraph> graph;
  std::vector<std::unique_ptr<const Stages>> stages;
  std::vector<StageForm> forms;
};

/// The schedules of all ranks as walks.
struct Walks {
  Schedule schedule;  ///< without actions
  std::vector<StageWalk> ranks;
  bool regular = true;  ///< micro-batches pass in order, and backwards are all whole or all split
  bool splits = false;  ///< backwards are split
  double stretch = 1;   ///< PlanSummary::pipeline_stretch
};

/// Layers of which every how many-th is recomputed.
std::int64_t recompute_every(const TrainingSpec& training);
Stages make_stages(const Scenario& scenario, Model& model, const Schedule& schedule);
Walks make_walks(const Scenario& scenario);

// ---- pieces ------------------------------------------------------------------------------------

enum class SegmentForm : std::uint8_t { kEmbedding, kBlock, kHead };

/// A piece, counted when it was asked for first.
struct Piece {
  const Fragment* fragment = nullptr;
  bool known = false;
};
/// The same in the parts that interjections leave.
struct PieceParts {
  std::vector<const Fragment*> fragments;
  bool known = false;
};
using PieceByOrder = std::array<Piece, kPieceOrderCount>;

/// Forward and backward of segments, batches and messages: what the batch decides.
struct SegmentPieces {
  /// Forwards do not depend on the order, but for the loss of the head, which is added to that of
  /// earlier micro-batches. Autocast casts weights in the first one and keeps the copies.
  bool forwards_alike = false;
  /// By pass, segment form, `kept_order`.
  std::array<std::array<std::array<PieceParts, kPieceOrderCount>, 3>, kPassKindCount> passes;
  std::array<PieceByOrder, 8> microbatch;  ///< by batch_index
  std::array<Piece, kMessageCount> messages;

  std::size_t kept_order(PassKind pass, SegmentForm form, PieceOrder order) const {
    const bool alike = forwards_alike && pass == PassKind::kForward && form != SegmentForm::kHead;
    return static_cast<std::size_t>(alike ? PieceOrder::kFirst : order);
  }
};

/// What the data-parallel kind and the optimizer do on a form of stage.
struct StagePieces {
  struct Chunk {
    /// By pass, before (0) or after (1) it, slot, order.
    std::array<std::array<std::array<PieceByOrder, kPieceSlotCount>, 2>, kPassKindCount> hooks;
    /// By the same: whether any of them does something.
    std::array<std::array<bool, 2>, kPassKindCount> any{};
  };
  CategoryBytes at_start{};
  Piece begin;
  Piece end;
  std::vector<Chunk> chunks;
  PieceByOrder microbatch_end;
  /// By position, for kinds that interject.
  using ByOrder = std::array<std::vector<const Fragment*>, kPieceOrderCount>;
  std::vector<ByOrder> interjections;
  std::vector<std::size_t> first_alike;  ///< by position: the first one with equal interjections
};

/// Batches differ by what the chunk holds, and the first chunk begins the micro-batch.
inline std::size_t batch_index(const ChunkForm& chunk, std::size_t number) {
  return (chunk.embedding ? 1U : 0U) + (chunk.head ? 2U : 0U) + (number == 0 ? 4U : 0U);
}

constexpr std::size_t index(PieceOrder order) {
  return static_cast<std::size_t>(order);
}
constexpr std::size_t index(PieceSlot slot) {
  return static_cast<std::size_t>(slot);
}
constexpr std::size_t index(PassKind pass) {
  return static_cast<std::size_t>(pass);
}
constexpr std::size_t index(SegmentForm form) {
  return static_cast<std::size_t>(form);
}

constexpr SegmentForm form_of(PieceSlot slot) {
  return slot == PieceSlot::kEmbedding ? SegmentForm::kEmbedding
         : slot == PieceSlot::kHead    ? SegmentForm::kHead
                                       : SegmentForm::kBlock;
}

/// True where each micro-batch is reduced by itself: then only the first one differs, and one
/// alone is a first one.
bool reduces_every_pass(const Scenario& scenario);

/// The order whose recorded pieces stand for those of `order`.
constexpr PieceOrder recorded_order(PieceOrder order, bool reduces_every) {
  return !reduces_every                 ? order
         : order == PieceOrder::kOnly   ? PieceOrder::kFirst
         : order == PieceOrder::kMiddle ? PieceOrder::kLast
                                        : order;
}

/// Orders of passes of a step: one micro-batch only, or the first, those between and the last.
inline std::span<const PieceOrder> orders_of(bool many) {
  static constexpr PieceOrder kMany[] = {
      PieceOrder::kFirst, PieceOrder::kMiddle, PieceOrder::kLast};
  static constexpr PieceOrder kOne[] = {PieceOrder::kOnly};
  return many ? std::span<const PieceOrder>(kMany) : std::span<const PieceOrder>(kOne);
}

// ---- by what they are kept ---------------------------------------------------------------------

/// What the keys of all stages of a scenario share. Complete them with the stage's own words.
struct PieceKeys {
  Key segment;  ///< all that forward, backward, batch and boundary of a segment depend on
  Key stage;    ///< all that hooks, init and the end of a step depend on
};
PieceKeys piece_keys(const Scenario& scenario, std::int64_t model, bool splits);
Key segment_key(const PieceKeys& keys, Recompute recompute, bool shares_weight);
Key stage_key(const PieceKeys& keys, std::int64_t form);
/// Whether two models have the same graph, given attention and dropout.
bool same_transformer(const ModelSpec& a, const ModelSpec& b);
/// True when the pieces of the step are alike wherever their keys are.
bool is_composed(const Scenario& scenario);

}  // namespace lockstep
