// Fragments: stretches of a class's step, counted once and used again.
//
// A step is a sequence of pieces: begin, the load of a micro-batch, what the data-parallel kind
// does before a segment, the segment itself, what it does after, a message to the next stage, the
// end with the optimizer. ProgramBuilder::piece hands each one to a sink as a Fragment: by how much
// it moves the held bytes, how high they stand inside, and its operations. A fragment says nothing
// about what was held before, so core/planner/summarizer.h can put a step together from fragments
// of earlier scenarios that agree in what the piece depends on.
//
// Where the data-parallel kind does something in the middle of a segment's backward, that is a
// piece of its own (ProgramBuilder::interject) and the backward falls into parts around it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/plan_summary.h"

namespace lockstep {

enum class PieceKind : std::uint8_t {
  kBegin,          ///< of the step
  kMicrobatch,     ///< before a stage's forward: hooks, batch
  kBeforeForward,  ///< hooks of the data-parallel kind around a segment
  kForward,
  kAfterForward,
  kBeforeBackward,
  kBackward,  ///< with the second forward of a dropped segment
  kAfterBackward,
  kMicrobatchEnd,  ///< after a stage's backward
  kSendForward,
  kRecvForward,
  kSendBackward,
  kRecvBackward,
  kInterjection,  ///< of the data-parallel kind, inside a backward
  kEnd,           ///< of the step: outstanding reductions, optimizer, what travels after it
};

/// Which segment of a chunk: blocks at the ends may differ from those between.
enum class PieceSlot : std::uint8_t { kEmbedding, kFirstBlock, kMiddleBlock, kLastBlock, kHead };
inline constexpr int kPieceSlotCount = 5;

/// Which pass of its stage: what has been accumulated before it, what comes after.
enum class PieceOrder : std::uint8_t { kFirst, kMiddle, kLast, kOnly };
inline constexpr int kPieceOrderCount = 4;

struct PieceId {
  PieceKind kind = PieceKind::kBegin;
  PieceSlot slot = PieceSlot::kEmbedding;
  PieceOrder order = PieceOrder::kFirst;
  bool weights = false;  ///< the half of a split backward that gives weight gradients
  std::int32_t chunk = 0;
  std::int32_t position = 0;  ///< of the segment in its StageLayout
};

/// Names an operation, by module and micro-batch relative to where the piece stood.
struct FragmentName {
  Phase phase = Phase::kInit;
  Work work = Work::kNone;
  std::uint32_t module = kNoModule;
  bool in_microbatch = false;
  bool operator==(const FragmentName&) const = default;
};

struct Fragment {
  std::int64_t delta_total = 0;
  std::int64_t peak_total = 0;  ///< never below 0: the start counts
  std::int64_t operations = 0;
  CategoryBytes delta{};        ///< held bytes at its end, minus at its start
  CategoryBytes peak_delta{};   ///< where it stood highest, minus at its start
  bool has_operations = false;  ///< other than alloc and free
  bool peak_open = false;       ///< the peak is named by the operation after the fragment
  FragmentName first;
  FragmentName peak;
  std::vector<OperationCount> counts;

  bool empty() const { return operations == 0; }
};
bool operator==(const Fragment& a, const Fragment& b);

/// Receives a builder's pieces; shapes and communicators of the counts are the builder's.
class FragmentSink {
 public:
  virtual ~FragmentSink() = default;
  /// Asked before each piece: one that is not wanted is not counted.
  virtual bool wants(const PieceId& id) = 0;
  virtual void take(const PieceId& id, Fragment&& fragment) = 0;
};

/// Keeps equal fragments once. Those of one store index the same tables.
class FragmentStore {
 public:
  /// The stored equal; none for a fragment without operations. Valid until clear().
  const Fragment* store(Fragment fragment);
  void clear();
  std::size_t size() const { return count_; }

 private:
  std::unordered_map<std::uint64_t, std::vector<std::unique_ptr<const Fragment>>> fragments_;
  std::size_t count_ = 0;
};

}  // namespace lockstep
