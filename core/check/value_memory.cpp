#include "core/check/value_memory.h"

namespace lockstep {
namespace {

bool continues(const ValuePiece& a, const ValuePiece& b) {
  return a.symbol.after(a.elements) == b.symbol;
}

/// A piece in memory, seen with another element size than it was written with, is not the tensor
/// that it was: a number of its own.
ValueSymbol reinterpreted(const ValueSymbol& symbol, std::int32_t size) {
  return {field::Hash(symbol.number).add(static_cast<std::uint64_t>(size)).number(), 0, 0, 1};
}

/// Appends a stored piece to a list of stored pieces (offsets in bytes).
void append_stored(ValueSlab& slab, const ValuePiece& piece) {
  if (piece.elements == 0) {
    return;
  }
  if (!slab.empty()) {
    ValuePiece& last = slab.back();
    if (last.offset + last.elements * last.element_size == piece.offset &&
        last.element_size == piece.element_size && continues(last, piece)) {
      last.elements += piece.elements;
      return;
    }
  }
  slab.push_back(piece);
}

/// The part of a stored piece inside [begin, end) bytes; elements 0 when there is none.
ValuePiece clipped(const ValuePiece& piece, std::int64_t begin, std::int64_t end) {
  const std::int64_t size = piece.element_size;
  const std::int64_t first = std::max<std::int64_t>(0, (begin - piece.offset + size - 1) / size);
  const std::int64_t last = std::min(piece.elements, (end - piece.offset) / size);
  if (end <= piece.offset || first >= last) {
    return {};
  }
  return {piece.offset + first * size, last - first, piece.symbol.after(first), piece.element_size};
}

}  // namespace

ValueSymbol ValueSymbol::after(std::int64_t elements) const {
  ValueSymbol next = *this;
  next.begin = number == 0 ? 0 : begin + elements;
  return next;
}

void append(ValueSlab& slab, const ValuePiece& piece) {
  if (!slab.empty()) {
    ValuePiece& last = slab.back();
    if (last.offset + last.elements == piece.offset && continues(last, piece)) {
      last.elements += piece.elements;
      return;
    }
  }
  slab.push_back(piece);
}

void cut(const ValueSlab& slab, std::int64_t begin, std::int64_t elements, ValueSlab& part) {
  part.clear();
  for (const ValuePiece& piece : slab) {
    const std::int64_t first = std::max(begin, piece.offset);
    const std::int64_t last = std::min(begin + elements, piece.offset + piece.elements);
    if (first < last) {
      append(part, {first - begin, last - first, piece.symbol.after(first - piece.offset)});
    }
  }
}

void append_at(ValueSlab& slab, const ValueSlab& part, std::int64_t offset) {
  for (const ValuePiece& piece : part) {
    append(slab, {piece.offset + offset, piece.elements, piece.symbol});
  }
}

field::Number digest(const ValueSlab& slab) {
  field::Hash hash(0x736c6162ULL);
  for (const ValuePiece& piece : slab) {
    hash.add(static_cast<std::uint64_t>(piece.offset))
        .add(static_cast<std::uint64_t>(piece.elements))
        .add(piece.symbol.number)
        .add(static_cast<std::uint64_t>(piece.symbol.begin))
        .add(static_cast<std::uint64_t>(piece.symbol.index))
        .add(static_cast<std::uint64_t>(piece.symbol.of));
  }
  return hash.number();
}

ValuePlaces::ValuePlaces(const std::vector<Buffer>& buffers) {
  places.resize(buffers.size());
  for (std::size_t id = 0; id < buffers.size(); ++id) {
    std::size_t root = id;
    std::int64_t offset = 0;
    // Borrowing from a borrower is not used, but costs nothing to follow; the bound stops a cycle.
    for (std::size_t step = 0; buffers[root].alias_of != kNoBuffer && step < buffers.size();
         ++step) {
      offset += buffers[root].alias_offset * size_of(buffers[root].dtype);
      root = buffers[root].alias_of;
    }
    places[id] = {static_cast<std::uint32_t>(root),
                  offset,
                  static_cast<std::int32_t>(size_of(buffers[id].dtype))};
  }
}

ValueMemory::ValueMemory(const ValuePlaces& places, const Mesh& mesh, int rank)
    : places_(&places), contents_(places.places.size()) {
  for (int axis = 0; axis < kViewAxisCount; ++axis) {
    coordinates_[static_cast<std::size_t>(axis)] = mesh.coordinate(rank, static_cast<Axis>(axis));
  }
}

void ValueMemory::read(const View& view, ValueSlab& slab) const {
  slab.clear();
  const ValuePlaces::Place& place = places_->of(view.buffer);
  const std::int64_t begin = place.offset + begin_of(view) * place.element_size;
  const std::int64_t end = begin + view.elements * place.element_size;
  for (const ValuePiece& stored : contents_[place.root]) {
    if (stored.offset >= end) {
      break;
    }
    const ValuePiece part = clipped(stored, begin, end);
    if (part.elements == 0) {
      continue;
    }
    const bool same = part.element_size == place.element_size;
    append(slab,
           {(part.offset - begin) / place.element_size,
            same ? part.elements : part.elements * part.element_size / place.element_size,
            same ? part.symbol : reinterpreted(part.symbol, part.element_size)});
  }
}

bool ValueMemory::write(const View& view, const ValueSlab& slab) {
  const ValuePlaces::Place& place = places_->of(view.buffer);
  ValueSlab& contents = contents_[place.root];
  const std::int64_t begin = place.offset + begin_of(view) * place.element_size;
  const std::int64_t end = begin + view.elements * place.element_size;
  scratch_.clear();
  std::size_t next = 0;
  for (; next < contents.size() && contents[next].offset < begin; ++next) {
    append_stored(scratch_, clipped(contents[next], INT64_MIN / 4, begin));
    if (contents[next].offset + contents[next].elements * contents[next].element_size > end) {
      break;  // it also reaches beyond the end
    }
  }
  for (const ValuePiece& piece : slab) {
    append_stored(scratch_,
                  {begin + piece.offset * place.element_size,
                   piece.elements,
                   piece.symbol,
                   place.element_size});
  }
  for (; next < contents.size(); ++next) {
    append_stored(scratch_, clipped(contents[next], end, INT64_MAX / 4));
  }
  if (scratch_ == contents) {
    return false;
  }
  contents.swap(scratch_);
  return true;
}

bool ValueMemory::write(const View& view, const ValueSymbol& symbol) {
  const ValuePlaces::Place& place = places_->of(view.buffer);
  ValueSlab& contents = contents_[place.root];
  const std::int64_t begin = place.offset + begin_of(view) * place.element_size;
  const ValuePiece piece{begin, view.elements, symbol, place.element_size};
  const std::int64_t end = begin + view.elements * place.element_size;
  // Nearly always the view is all that the buffer holds.
  if (contents.empty() ||
      (contents.size() == 1 && contents[0].offset >= begin &&
       contents[0].offset + contents[0].elements * contents[0].element_size <= end)) {
    const bool same = !contents.empty() && contents[0] == piece;
    contents.assign(view.elements > 0 ? 1 : 0, piece);
    return !same;
  }
  ValueSlab one;
  if (view.elements > 0) {
    one.push_back({0, view.elements, symbol});
  }
  return write(view, one);
}

void ValueMemory::forget(std::uint32_t buffer) {
  const ValuePlaces::Place& place = places_->of(buffer);
  if (place.root == buffer) {
    contents_[buffer].clear();
  }
}

}  // namespace lockstep
