// Value memory: what one rank's buffers hold, as pieces of symbols instead of elements.
//
// A symbol is a number that stands for a whole logical tensor (an activation of one micro-batch, a
// gradient, a version of a parameter), and says which elements of it begin here. Under tensor
// parallelism the logical tensor may be one of `of` slices across its rows; tokens are cut as plain
// ranges of elements. Memory that no piece covers is uninitialised.
//
//     memory.write(view, {{0, view.elements, symbol}});
//     memory.read(view, slab);   // pieces relative to the view, uninitialised parts left out
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/check/value_field.h"
#include "core/plan.h"

namespace lockstep {

struct ValueSymbol {
  field::Number number = 0;  ///< of the whole logical tensor; 0 = zeros, whatever the position
  std::int64_t begin = 0;    ///< first element of it that is meant
  std::int32_t index = 0;    ///< which of `of` slices over tensor-parallel ranks
  std::int32_t of = 1;       ///< 1 = not sliced

  bool operator==(const ValueSymbol&) const = default;
  /// The same tensor, `elements` further on.
  ValueSymbol after(std::int64_t elements) const;
  bool same_slice(const ValueSymbol& other) const { return index == other.index && of == other.of; }
};

struct ValuePiece {
  std::int64_t offset = 0;  ///< elements from the start of the view (in memory: bytes)
  std::int64_t elements = 0;
  ValueSymbol symbol;
  std::int32_t element_size = 0;  ///< in memory only; 0 in a slab

  bool operator==(const ValuePiece&) const = default;
};

/// Pieces in rising order without overlap; neighbours that continue each other are one piece.
using ValueSlab = std::vector<ValuePiece>;

/// Appends and joins with the last piece where that is its continuation.
void append(ValueSlab& slab, const ValuePiece& piece);
/// The part [begin, begin + elements) of a slab, moved to begin at 0.
void cut(const ValueSlab& slab, std::int64_t begin, std::int64_t elements, ValueSlab& part);
/// Adds a slab whose place is `offset` elements further on.
void append_at(ValueSlab& slab, const ValueSlab& part, std::int64_t offset);
/// A number that depends on all that the slab holds.
field::Number digest(const ValueSlab& slab);

/// Calls visit(offset, elements, symbols) for every stretch in which no slab has a border; a null
/// pointer in `symbols` means that this slab is uninitialised there. Stretches that are
/// uninitialised in all are left out.
template <typename Visit>
void zip(std::span<const ValueSlab* const> slabs, Visit&& visit);

/// Where the buffers of a class lie: aliases resolved to the buffer whose memory they borrow.
struct ValuePlaces {
  struct Place {
    std::uint32_t root = kNoBuffer;
    std::int64_t offset = 0;  ///< bytes
    std::int32_t element_size = 0;
  };
  explicit ValuePlaces(const std::vector<Buffer>& buffers);
  const Place& of(std::uint32_t buffer) const { return places[buffer]; }
  std::vector<Place> places;
};

class ValueMemory {
 public:
  ValueMemory(const ValuePlaces& places, const Mesh& mesh, int rank);

  /// First element of a view on this rank.
  std::int64_t begin_of(const View& view) const {
    return view.offset + coordinates_[static_cast<std::size_t>(view.axis)] * view.stride;
  }
  int coordinate(Axis axis) const {
    return static_cast<int>(coordinates_[static_cast<std::size_t>(axis)]);
  }
  std::uint32_t root_of(const View& view) const { return places_->of(view.buffer).root; }

  /// Fills `slab` (cleared first) with what the view shows.
  void read(const View& view, ValueSlab& slab) const;
  /// Replaces what the view shows; parts that the slab leaves out become uninitialised. Returns
  /// whether anything changed.
  bool write(const View& view, const ValueSlab& slab);
  bool write(const View& view, const ValueSymbol& symbol);
  /// Uninitialised from here on, unless it borrows its memory.
  void forget(std::uint32_t buffer);

  /// All that a buffer with memory of its own holds; offsets in bytes.
  const ValueSlab& raw(std::uint32_t root) const { return contents_[root]; }
  ValueSlab& raw(std::uint32_t root) { return contents_[root]; }
  std::size_t buffer_count() const { return contents_.size(); }

 private:
  const ValuePlaces* places_;
  std::array<std::int64_t, kViewAxisCount + 1> coordinates_{};
  std::vector<ValueSlab> contents_;  ///< by root buffer
  ValueSlab scratch_;
};

// ---- zip ---------------------------------------------------------------------------------------

template <typename Visit>
void zip(std::span<const ValueSlab* const> slabs, Visit&& visit) {
  static constexpr std::size_t kMost = 72;  // ranks of a collective, operands of a work
  std::array<std::size_t, kMost> next{};
  std::array<ValueSymbol, kMost> storage;
  std::array<const ValueSymbol*, kMost> symbols{};
  const std::size_t count = slabs.size();
  std::int64_t at = 0;
  for (;;) {
    std::int64_t end = INT64_MAX;
    bool any = false;
    for (std::size_t i = 0; i < count; ++i) {
      const ValueSlab& slab = *slabs[i];
      while (next[i] < slab.size() && slab[next[i]].offset + slab[next[i]].elements <= at) {
        ++next[i];
      }
      symbols[i] = nullptr;
      if (next[i] == slab.size()) {
        continue;
      }
      const ValuePiece& piece = slab[next[i]];
      if (piece.offset > at) {
        end = std::min(end, piece.offset);
        continue;
      }
      storage[i] = piece.symbol.after(at - piece.offset);
      symbols[i] = &storage[i];
      end = std::min(end, piece.offset + piece.elements);
      any = true;
    }
    if (end == INT64_MAX) {
      return;
    }
    if (any) {
      visit(at, end - at, std::span<const ValueSymbol* const>(symbols.data(), count));
    }
    at = end;
  }
}

}  // namespace lockstep
