#include "core/layout.h"

#include <random>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

/// One element of a flat buffer: (parameter, logical element), or kPadding.
using Element = std::pair<std::int32_t, std::int64_t>;
using Buffer = std::vector<Element>;

const Element kPadding{-1, -1};

/// What a coordinate's buffer holds according to the pieces; checks the promises of for_each_piece.
Buffer buffer_of(const Layout& layout, std::int32_t coordinate) {
  Buffer buffer(static_cast<std::size_t>(layout.elements_per_coordinate), kPadding);
  std::int64_t end = 0;
  std::int64_t valid = 0;
  for_each_piece(layout, coordinate, [&](const LayoutPiece& piece) {
    REQUIRE(piece.elements > 0);
    REQUIRE(piece.offset >= end);
    end = piece.offset + piece.elements;
    REQUIRE(end <= layout.elements_per_coordinate);
    for (std::int64_t i = 0; i < piece.elements; ++i) {
      buffer[static_cast<std::size_t>(piece.offset + i)] = {piece.parameter, piece.first + i};
    }
    valid += piece.elements;
  });
  REQUIRE(valid == valid_elements(layout, coordinate));
  return buffer;
}

std::vector<Buffer> buffers_of(const Layout& layout) {
  std::vector<Buffer> buffers;
  for (std::int32_t c = 0; c < layout.coordinates; ++c) {
    buffers.push_back(buffer_of(layout, c));
  }
  return buffers;
}

Buffer elements_of(const ParameterExtent& extent) {
  Buffer elements;
  for (std::int64_t i = 0; i < extent.elements(); ++i) {
    elements.emplace_back(extent.parameter, i);
  }
  return elements;
}

/// Second algorithm for shards that follow the parameter: write the parameter down row by row,
/// deal the rows out as torch.split(ceil(rows / N)) does, fill up to the first shard's size.
std::vector<Buffer> shards_by_dealing(const std::vector<ParameterExtent>& extents, int count) {
  std::vector<Buffer> shards(static_cast<std::size_t>(count));
  for (const ParameterExtent& extent : extents) {
    const std::int64_t inner = extent.row_elements / extent.outer;
    std::int64_t chunk = 0;
    while (chunk * count < extent.rows) {
      ++chunk;
    }
    for (int c = 0; c < count; ++c) {
      Buffer& shard = shards[static_cast<std::size_t>(c)];
      const std::size_t full = shard.size() + static_cast<std::size_t>(chunk * extent.row_elements);
      for (std::int64_t o = 0; o < extent.outer; ++o) {
        for (std::int64_t row = c * chunk; row < (c + 1) * chunk && row < extent.rows; ++row) {
          for (std::int64_t i = 0; i < inner; ++i) {
            shard.emplace_back(extent.parameter, (o * extent.rows + row) * inner + i);
          }
        }
      }
      shard.resize(full, kPadding);
    }
  }
  return shards;
}

/// Second algorithm for flat partitions: concatenate, pad, cut.
std::vector<Buffer> shards_by_cutting(const std::vector<ParameterExtent>& extents,
                                      int count,
                                      FlatAlignment alignment) {
  Buffer all;
  const auto pad_to = [&](std::int64_t multiple) {
    while (all.size() % static_cast<std::size_t>(multiple) != 0) {
      all.push_back(kPadding);
    }
  };
  for (const ParameterExtent& extent : extents) {
    pad_to(alignment.start);
    const Buffer elements = elements_of(extent);
    all.insert(all.end(), elements.begin(), elements.end());
  }
  pad_to(alignment.end);
  const auto part = static_cast<std::ptrdiff_t>(all.size()) / count;
  std::vector<Buffer> shards;
  for (int c = 0; c < count; ++c) {
    shards.emplace_back(all.begin() + c * part, all.begin() + (c + 1) * part);
  }
  return shards;
}

/// Every element of every parameter lies in exactly one place, and the rest is the padding claimed.
void check_ownership(const Layout& layout, const std::vector<ParameterExtent>& extents) {
  std::vector<std::vector<int>> owners(extents.size());
  std::int64_t elements = 0;
  for (std::size_t p = 0; p < extents.size(); ++p) {
    owners[p].assign(static_cast<std::size_t>(extents[p].elements()), 0);
    elements += extents[p].elements();
  }
  std::int64_t padding = 0;
  for (const Buffer& buffer : buffers_of(layout)) {
    REQUIRE(static_cast<std::int64_t>(buffer.size()) == layout.elements_per_coordinate);
    for (const Element& element : buffer) {
      if (element == kPadding) {
        ++padding;
      } else {
        ++owners.at(static_cast<std::size_t>(element.first))
              .at(static_cast<std::size_t>(element.second));
      }
    }
  }
  for (const std::vector<int>& owner : owners) {
    REQUIRE(std::all_of(owner.begin(), owner.end(), [](int count) { return count == 1; }));
  }
  REQUIRE(layout.elements() == elements);
  REQUIRE(layout.padding_elements() == padding);
  REQUIRE(layout.padded_elements() == elements + padding);
}

class RandomExtents {
 public:
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(generator_() % static_cast<std::uint64_t>(bound));
  }

  /// Up to 6 parameters, some empty; cut along dimension 1 only where `divisor` allows it.
  std::vector<ParameterExtent> draw(int divisor) {
    std::vector<ParameterExtent> extents(static_cast<std::size_t>(below(7)));
    for (std::size_t p = 0; p < extents.size(); ++p) {
      ParameterExtent& extent = extents[p];
      extent.parameter = static_cast<std::int32_t>(p);
      extent.rows = below(20);
      extent.row_elements = below(5);
      if (below(4) == 0) {
        extent.dim = 1;
        extent.outer = 1 + below(3);
        extent.rows = divisor * below(4);
        extent.row_elements *= extent.outer;
      }
    }
    return extents;
  }

 private:
  std::mt19937_64 generator_{test::test_seed()};
};

std::vector<std::int64_t> valid_rows_of(const LayoutEntry& entry, std::int32_t coordinates) {
  std::vector<std::int64_t> rows;
  for (std::int32_t c = 0; c < coordinates; ++c) {
    rows.push_back(valid_rows(entry, c));
  }
  return rows;
}

using Rows = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("dim-0 shards have ceil(rows / N) rows and the last ones are short or empty") {
  Layout layout;
  // Rows 5, 3 and 1 on 4 ranks: torch.chunk gives 2+2+1, 1+1+1 and 1.
  const std::vector<ParameterExtent> extents{{0, 5, 10}, {1, 3, 7}, {2, 1, 1}};
  shard_dim0(extents, 4, layout);
  CHECK(valid_rows_of(layout.entries[0], 4) == Rows{2, 2, 1, 0});
  CHECK(valid_rows_of(layout.entries[1], 4) == Rows{1, 1, 1, 0});
  CHECK(valid_rows_of(layout.entries[2], 4) == Rows{1, 0, 0, 0});
  CHECK(layout.entries[1].flat_offset == 20);
  CHECK(layout.entries[2].flat_offset == 27);
  CHECK(layout.elements_per_coordinate == 28);
  CHECK(layout.elements() == 72);
  CHECK(layout.padding_elements() == 4 * 28 - 72);
  CHECK(valid_elements(layout, 3) == 0);
}

TEST_CASE("GPT-2's embedding on 8 ranks is padded by 7 rows") {
  Layout layout;
  shard_dim0(std::vector<ParameterExtent>{{0, 50257, 768}}, 8, layout);
  CHECK(layout.elements_per_coordinate == 6283 * 768);  // ceil(50257 / 8) = 6283
  CHECK(valid_rows(layout.entries[0], 7) == 50257 - 7 * 6283);
  CHECK(layout.padding_elements() == 7 * 768);
}

TEST_CASE("a shard along dimension 1 is one piece for each row of dimension 0") {
  Layout layout;
  // Shape (2, 6), cut along dimension 1 in 3: coordinate 1 holds columns 2 and 3 of both rows.
  const ParameterExtent weight{.parameter = 9, .rows = 6, .row_elements = 2, .dim = 1, .outer = 2};
  shard_dim0({&weight, 1}, 3, layout);
  CHECK(layout.elements_per_coordinate == 4);
  CHECK(buffer_of(layout, 1) == Buffer{{9, 2}, {9, 3}, {9, 8}, {9, 9}});
  CHECK_THROWS_AS(shard_dim0({&weight, 1}, 4, layout), InternalError);

  // Whole, it is one piece.
  shard_dim0({&weight, 1}, 1, layout);
  int pieces = 0;
  for_each_piece(layout, 0, [&](const LayoutPiece&) { ++pieces; });
  CHECK(pieces == 1);
}

TEST_CASE("DeepSpeed's flat partitions are padded to 2 N and cross parameter borders") {
  Layout layout;
  // 10 + 7 elements on 3 ranks: padded to 18 = 3 * 6, so parameter 0 ends inside partition 1.
  const std::vector<ParameterExtent> extents{{0, 5, 2}, {1, 7, 1}};
  flat_partition(extents, 3, {1, 2 * 3}, layout);
  CHECK(layout.elements_per_coordinate == 6);
  CHECK(layout.padding_elements() == 1);
  CHECK(valid_rows_of(layout.entries[0], 3) == Rows{6, 4, 0});
  CHECK(valid_rows_of(layout.entries[1], 3) == Rows{0, 2, 5});
  CHECK(buffer_of(layout, 1) == Buffer{{0, 6}, {0, 7}, {0, 8}, {0, 9}, {1, 0}, {1, 1}});
  CHECK_THROWS_AS(flat_partition(extents, 3, {1, 4}, layout), InternalError);
}

TEST_CASE("DeepSpeed stage 3 cuts every flattened parameter by itself") {
  Layout layout;
  flat_per_parameter(std::vector<ParameterExtent>{{0, 5, 2}, {1, 2, 1}}, 4, layout);
  CHECK(valid_rows_of(layout.entries[0], 4) == Rows{3, 3, 3, 1});  // 10 elements, ceil(10/4) = 3
  CHECK(valid_rows_of(layout.entries[1], 4) == Rows{1, 1, 0, 0});
  CHECK(layout.elements_per_coordinate == 4);
  CHECK(buffer_of(layout, 1) == Buffer{{0, 3}, {0, 4}, {0, 5}, {1, 1}});
  CHECK(buffer_of(layout, 3) == Buffer{{0, 9}, kPadding, kPadding, kPadding});
}

TEST_CASE("a DDP bucket is the plain concatenation") {
  Layout layout;
  bucket_layout(std::vector<ParameterExtent>{{3, 2, 2}, {1, 3, 1}}, layout);
  CHECK(layout.coordinates == 1);
  CHECK(layout.padding_elements() == 0);
  CHECK(buffer_of(layout, 0) == Buffer{{3, 0}, {3, 1}, {3, 2}, {3, 3}, {1, 0}, {1, 1}, {1, 2}});
}

TEST_CASE("distributed optimizer buckets align parameters to 64 and end at lcm(dp, 128)") {
  Layout layout;
  // Starts 0, 128, 192; the end 197 is padded to lcm(6, 128) = 384, so a slice is 64 elements.
  const std::vector<ParameterExtent> extents{{0, 10, 10}, {1, 30, 1}, {2, 5, 1}};
  distributed_optimizer_bucket(extents, 6, false, layout);
  CHECK(layout.elements_per_coordinate == 64);
  CHECK(valid_rows_of(layout.entries[0], 6) == Rows{64, 36, 0, 0, 0, 0});
  CHECK(valid_rows_of(layout.entries[1], 6) == Rows{0, 0, 30, 0, 0, 0});
  CHECK(valid_rows_of(layout.entries[2], 6) == Rows{0, 0, 0, 5, 0, 0});
  CHECK(layout.padding_elements() == 384 - 135);
  CHECK(distributed_optimizer_end(6, true) == 3 * 65536);
  CHECK(distributed_optimizer_end(64, false) == 128);
}

TEST_CASE("every layout agrees with writing all elements down, on random parameters") {
  RandomExtents random;
  Layout layout;
  for (int round = 0; round < test::scaled(300); ++round) {
    const int count = 1 + static_cast<int>(random.below(9));
    std::vector<ParameterExtent> extents = random.draw(count);
    CAPTURE(round, count);

    shard_dim0(extents, count, layout);
    CHECK(buffers_of(layout) == shards_by_dealing(extents, count));
    check_ownership(layout, extents);

    bucket_layout(extents, layout);
    CHECK(buffers_of(layout) == shards_by_cutting(extents, 1, {1, 1}));

    const FlatAlignment alignment{1 + random.below(9), count * (1 + random.below(4))};
    flat_partition(extents, count, alignment, layout);
    CHECK(buffers_of(layout) == shards_by_cutting(extents, count, alignment));
    check_ownership(layout, extents);

    distributed_optimizer_bucket(extents, count, false, layout);
    check_ownership(layout, extents);

    flat_per_parameter(extents, count, layout);
    for (ParameterExtent& extent : extents) {
      extent = {extent.parameter, extent.elements()};
    }
    CHECK(buffers_of(layout) == shards_by_dealing(extents, count));
    check_ownership(layout, extents);
  }
}

TEST_CASE("building a layout again keeps its memory") {
  Layout layout;
  const std::vector<ParameterExtent> extents{{0, 5, 10}, {1, 3, 7}, {2, 1, 1}};
  shard_dim0(extents, 4, layout);
  const LayoutEntry* const memory = layout.entries.data();
  flat_partition(extents, 4, {1, 4}, layout);
  CHECK(layout.entries.data() == memory);
}

}  // namespace lockstep
