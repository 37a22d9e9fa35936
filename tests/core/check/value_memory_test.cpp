// Value memory and exchange against the same thing done element by element.
#include "core/check/value_memory.h"

#include <random>
#include <vector>

#include "core/check/value_exchange.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using field::Number;

/// One element: which element of which tensor, or nothing.
struct Cell {
  Number number = 0;
  std::int64_t position = -1;
  bool there = false;
  bool operator==(const Cell&) const = default;
};

std::vector<Cell> cells_of(const ValueSlab& slab, std::int64_t elements) {
  std::vector<Cell> cells(static_cast<std::size_t>(elements));
  for (const ValuePiece& piece : slab) {
    for (std::int64_t i = 0; i < piece.elements; ++i) {
      const ValueSymbol symbol = piece.symbol.after(i);
      cells[static_cast<std::size_t>(piece.offset + i)] = {symbol.number, symbol.begin, true};
    }
  }
  return cells;
}

/// Pieces with gaps, of a handful of tensors.
ValueSlab random_slab(std::mt19937_64& random, std::int64_t elements) {
  ValueSlab slab;
  std::int64_t at = 0;
  while (at < elements) {
    const auto length =
        std::min<std::int64_t>(elements - at, 1 + static_cast<std::int64_t>(random() % 5));
    if (random() % 4 != 0) {
      const Number number = random() % 3;
      const std::int64_t begin = number == 0 ? 0 : static_cast<std::int64_t>(random() % 3) + at;
      append(slab, {at, length, {number, begin, 0, 1}});
    }
    at += length;
  }
  return slab;
}

TEST_CASE("memory that is written in pieces reads as if written element by element") {
  constexpr std::int64_t kElements = 40;
  std::vector<Buffer> buffers(2);
  buffers[0].elements = kElements;
  buffers[1].elements = 12;
  buffers[1].alias_of = 0;
  buffers[1].alias_offset = 7;
  const ValuePlaces places(buffers);
  Mesh mesh;
  mesh.set(Axis::kData, 4);
  std::mt19937_64 random(test::test_seed());
  for (int round = 0; round < test::scaled(50); ++round) {
    ValueMemory memory(places, mesh, 2);
    std::vector<Cell> cells(kElements);
    ValueSlab read;
    for (int i = 0; i < 20; ++i) {
      const bool alias = random() % 3 == 0;
      const std::int64_t limit = alias ? 12 : kElements;
      const auto offset = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
      const auto elements =
          static_cast<std::int64_t>(1 + random() % static_cast<std::uint64_t>(limit - offset));
      const View view{alias ? 1U : 0U, Axis::kNone, offset, elements, 0};
      const ValueSlab slab = random_slab(random, elements);
      const std::vector<Cell> before = cells;
      const std::vector<Cell> written = cells_of(slab, elements);
      const std::size_t first = static_cast<std::size_t>(offset + (alias ? 7 : 0));
      std::copy(written.begin(), written.end(), cells.begin() + static_cast<std::ptrdiff_t>(first));
      const bool changed = memory.write(view, slab);
      REQUIRE(changed == (before != cells));
      memory.read(View{0, Axis::kNone, 0, kElements, 0}, read);
      REQUIRE(cells_of(read, kElements) == cells);
      memory.read(view, read);
      REQUIRE(cells_of(read, elements) == written);
    }
  }
}

TEST_CASE("a view with a stride shows the part of the rank's coordinate") {
  std::vector<Buffer> buffers(1);
  buffers[0].elements = 12;
  const ValuePlaces places(buffers);
  Mesh mesh;
  mesh.set(Axis::kData, 4);
  ValueMemory memory(places, mesh, 2);
  memory.write(View{0, Axis::kNone, 0, 12, 0}, ValueSymbol{5, 0, 0, 1});
  ValueSlab slab;
  memory.read(View{0, Axis::kData, 0, 3, 3}, slab);
  REQUIRE(slab.size() == 1);
  CHECK(slab[0].symbol == ValueSymbol{5, 6, 0, 1});
  memory.forget(0);
  memory.read(View{0, Axis::kData, 0, 3, 3}, slab);
  CHECK(slab.empty());
}

TEST_CASE("what was written with one element size is not that tensor with another") {
  std::vector<Buffer> buffers(2);
  buffers[0].elements = 8;
  buffers[1].elements = 16;
  buffers[1].dtype = DType::kBf16;
  buffers[1].alias_of = 0;
  const ValuePlaces places(buffers);
  ValueMemory memory(places, Mesh(), 0);
  memory.write(View{0, Axis::kNone, 0, 8, 0}, ValueSymbol{5, 0, 0, 1});
  ValueSlab slab;
  memory.read(View{1, Axis::kNone, 0, 16, 0}, slab);
  REQUIRE(slab.size() == 1);
  CHECK(slab[0].elements == 16);
  CHECK(slab[0].symbol.number != 5);
}

// ---- exchange ----------------------------------------------------------------------------------

ExchangeResult exchanged(const Operation& op, const std::vector<ValueSlab>& inputs) {
  ExchangeResult result;
  exchange(
      op, inputs, [](Number a, Number b) { return std::max(a, b); }, result);
  return result;
}

Operation collective(Collective kind, std::int64_t elements, Reduction reduction) {
  Operation op;
  op.kind = OperationKind::kCollective;
  op.collective = kind;
  op.elements = elements;
  op.reduction = reduction;
  op.root = 0;
  return op;
}

/// Parts of the sum of all members' slabs: element i of tensor 1 plus the same of tensor 2 ...
TEST_CASE("a reduce-scatter and an all-gather are an all-reduce") {
  std::mt19937_64 random(test::test_seed());
  for (int i = 0; i < test::scaled(50); ++i) {
    const auto members = static_cast<std::int64_t>(2 + random() % 4);
    const std::int64_t each = 5;
    std::vector<ValueSlab> inputs;
    for (std::int64_t m = 0; m < members; ++m) {
      inputs.push_back(random_slab(random, members * each));
    }
    const ExchangeResult whole =
        exchanged(collective(Collective::kAllReduce, members * each, Reduction::kAverage), inputs);
    const ExchangeResult shards =
        exchanged(collective(Collective::kReduceScatter, each, Reduction::kAverage), inputs);
    const ExchangeResult gathered =
        exchanged(collective(Collective::kAllGather, each, Reduction::kNone), shards.outputs);
    for (std::size_t m = 0; m < inputs.size(); ++m) {
      REQUIRE(whole.receives[m] == 1);
      REQUIRE(cells_of(gathered.outputs[m], members * each) ==
              cells_of(whole.outputs[m], members * each));
    }
  }
}

TEST_CASE("a sum is uninitialised where one operand is, and zeros add nothing") {
  const ValueSlab full{{0, 4, {7, 2, 0, 1}}};
  const ValueSlab half{{2, 2, {5, 4, 0, 1}}};
  const ValueSlab zeros{{0, 4, {}}};
  ValueSlab sum;
  const ValueSlab* with_hole[] = {&full, &half};
  sum_slabs(with_hole, sum);
  CHECK(sum == ValueSlab{{2, 2, {12, 4, 0, 1}}});
  const ValueSlab* with_zeros[] = {&zeros, &full};
  sum_slabs(with_zeros, sum);
  CHECK(sum == full);
}

TEST_CASE("the maximum over all slices is whole, over some of them it is not") {
  const auto slice = [](std::int32_t index) { return ValueSlab{{0, 4, {7, 0, index, 2}}}; };
  const Operation max = collective(Collective::kAllReduce, 4, Reduction::kMax);
  CHECK(exchanged(max, {slice(0), slice(1)}).outputs[0] == ValueSlab{{0, 4, {7, 0, 0, 1}}});
  CHECK(exchanged(max, {slice(1), slice(1)}).outputs[0] == slice(1));
}

TEST_CASE("only the root of a reduce receives, only the root of a broadcast gives") {
  const std::vector<ValueSlab> inputs{{{0, 4, {7, 0, 0, 1}}}, {{0, 4, {5, 0, 0, 1}}}};
  const ExchangeResult reduced =
      exchanged(collective(Collective::kReduce, 4, Reduction::kSum), inputs);
  CHECK(reduced.receives == std::vector<std::uint8_t>{1, 0});
  CHECK(reduced.outputs[0] == ValueSlab{{0, 4, {12, 0, 0, 1}}});
  const ExchangeResult sent =
      exchanged(collective(Collective::kBroadcast, 4, Reduction::kNone), inputs);
  CHECK(sent.outputs[1] == inputs[0]);
}

}  // namespace
}  // namespace lockstep
