// Every collective of the local backend, by every algorithm, against its definition; and the bits
// of sums, which have to be the same however a message is cut.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "executor/local_communicator.h"
#include "tests/executor/naive_collectives.h"
#include "tests/support/catch.h"
#include "tests/support/scale.h"
#include "tests/support/spawn_ranks.h"
#include "tests/support/typed_values.h"

namespace lockstep::exec {
namespace {

using test::Bytes;
using test::Values;

constexpr Collective kKinds[] = {Collective::kAllReduce,
                                 Collective::kReduce,
                                 Collective::kReduceScatter,
                                 Collective::kAllGather,
                                 Collective::kGather,
                                 Collective::kBroadcast,
                                 Collective::kScatter,
                                 Collective::kAllToAll,
                                 Collective::kBarrier};
constexpr Algorithm kAlgorithms[] = {
    Algorithm::kAuto, Algorithm::kDirect, Algorithm::kRing, Algorithm::kTree};

struct Case {
  Collective kind = Collective::kAllReduce;
  Reduction reduction = Reduction::kNone;
  DType dtype = DType::kFp32;
  Algorithm algorithm = Algorithm::kAuto;
  std::size_t n = 0;
  std::size_t root = 0;
  bool in_place = false;
};

std::string text_of(const Case& each) {
  return fmt::format("{} {} {} {} n={} root={} in_place={}",
                     name_of(each.kind),
                     name_of(each.reduction),
                     name_of(each.dtype),
                     name_of(each.algorithm),
                     each.n,
                     each.root,
                     each.in_place);
}

bool reduces(Collective kind) {
  return kind == Collective::kAllReduce || kind == Collective::kReduce ||
         kind == Collective::kReduceScatter;
}

bool may_be_in_place(Collective kind) {
  return kind == Collective::kAllReduce || kind == Collective::kBroadcast ||
         kind == Collective::kAllGather || kind == Collective::kReduceScatter;
}

std::vector<Values> inputs_of(const Case& each, std::size_t members) {
  std::vector<Values> inputs(members);
  for (std::size_t k = 0; k < members; ++k) {
    inputs[k].resize(test::input_elements(each.kind, each.n, members));
    for (std::size_t i = 0; i < inputs[k].size(); ++i) {
      inputs[k][i] = static_cast<double>((i * 7 + k * 5 + i / 13) % 16);
    }
  }
  return inputs;
}

/// One member's buffers: apart, or one inside the other as core/operands.h says.
struct Buffers {
  Bytes in;
  Bytes out;
  const std::byte* in_data = nullptr;
  std::byte* out_data = nullptr;
  Buffers(const Case& each, const Bytes& input, std::size_t output_bytes, std::size_t rank) {
    if (!each.in_place) {
      in = input;
      out.assign(output_bytes, std::byte{0xee});
      in_data = in.data();
      out_data = out.data();
    } else if (each.kind == Collective::kAllGather) {
      out.assign(output_bytes, std::byte{0xee});
      std::copy(input.begin(),
                input.end(),
                out.begin() + static_cast<std::ptrdiff_t>(rank * input.size()));
      in_data = out.data() + rank * input.size();
      out_data = out.data();
    } else {
      in = input;
      in_data = in.data();
      out_data = in.data() +
                 (each.kind == Collective::kReduceScatter ? rank * output_bytes : std::size_t{0});
    }
  }
};

/// Sums and maxima of the small integers are exact; averages multiply every term by 1 / members,
/// which is off by half of the last place, and so is every sum of them.
bool as_expected(const Case& each,
                 std::size_t members,
                 const Bytes& expected,
                 const std::byte* is) {
  const double epsilon = test::epsilon_of(each.dtype);
  if (each.reduction != Reduction::kAverage || epsilon == 0) {
    return std::equal(expected.begin(), expected.end(), is);
  }
  const std::size_t count = expected.size() / static_cast<std::size_t>(size_of(each.dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const double wanted = test::decode(each.dtype, expected.data(), i);
    const double error = std::abs(test::decode(each.dtype, is, i) - wanted);
    if (!(error <= static_cast<double>(members) * epsilon * wanted)) {
      return false;
    }
  }
  return true;
}

/// Runs the case on one member; returns what is wrong, or "".
std::string fault_of(const Case& each, Communicator& communicator) {
  const auto rank = static_cast<std::size_t>(communicator.rank());
  const auto members = static_cast<std::size_t>(communicator.size());
  const std::vector<Values> inputs = inputs_of(each, members);
  const Bytes input = test::encode(each.dtype, inputs[rank]);
  const Bytes expected = test::encode(
      each.dtype,
      test::naive_output(each.kind, each.reduction, each.dtype, inputs, each.n, each.root, rank));
  Buffers buffers(each, input, expected.size(), rank);
  const bool rooted = each.kind == Collective::kReduce || each.kind == Collective::kGather ||
                      each.kind == Collective::kBroadcast || each.kind == Collective::kScatter;
  const bool at_root = rank == each.root;
  const bool needs_in =
      each.kind != Collective::kScatter && each.kind != Collective::kBroadcast ? true : at_root;
  communicator.run({.collective = each.kind,
                    .reduction = each.reduction,
                    .dtype = each.dtype,
                    .algorithm = each.algorithm,
                    .peer = static_cast<std::int16_t>(rooted ? static_cast<int>(each.root) : -1),
                    .elements = static_cast<std::int64_t>(each.n),
                    .in = needs_in || each.in_place ? buffers.in_data : nullptr,
                    .out = expected.empty() ? nullptr : buffers.out_data});
  if (!as_expected(each, members, expected, buffers.out_data)) {
    return fmt::format("rank {} of {}: {}", rank, members, text_of(each));
  }
  if (!each.in_place && buffers.in != input) {
    return fmt::format("rank {} of {} changed its input: {}", rank, members, text_of(each));
  }
  return {};
}

std::vector<Case> grid(std::size_t members) {
  std::vector<Case> cases;
  for (const Collective kind : kKinds) {
    for (int dtype = 0; dtype < kDTypeCount; ++dtype) {
      for (const Algorithm algorithm : kAlgorithms) {
        for (const std::size_t n : {0, 1, 3, 17, 1031}) {
          for (const bool in_place : {false, true}) {
            for (const Reduction reduction :
                 {Reduction::kSum, Reduction::kMax, Reduction::kAverage}) {
              Case each{kind, reduction, static_cast<DType>(dtype), algorithm, n, 0, in_place};
              each.root = (n + static_cast<std::size_t>(dtype)) % members;
              if (kind == Collective::kAllToAll) {
                each.n *= members;
              }
              if (!reduces(kind)) {
                each.reduction = Reduction::kNone;
              }
              if ((reduces(kind) || reduction == Reduction::kSum) &&
                  (!in_place || may_be_in_place(kind))) {
                cases.push_back(each);
              }
            }
          }
        }
      }
    }
  }
  return cases;
}

TEST_CASE("every collective gives what its definition says, for 1 to 8 ranks") {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    const std::vector<Case> cases = grid(static_cast<std::size_t>(ranks));
    auto communicators = make_local_communicators(ranks);
    std::vector<std::string> faults(static_cast<std::size_t>(ranks));
    test::spawn_ranks(ranks, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (const Case& each : cases) {
        const std::string fault = fault_of(each, *communicators[r]);
        if (faults[r].empty()) {
          faults[r] = fault;
        }
      }
    });
    for (const std::string& fault : faults) {
      CHECK(fault.empty());
    }
  }
}

TEST_CASE("messages of many blocks and pieces arrive whole") {
  for (const int ranks : {2, 3, 5, 8}) {
    auto communicators = make_local_communicators(ranks);
    std::vector<std::string> faults(static_cast<std::size_t>(ranks));
    test::spawn_ranks(ranks, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (const Collective kind : kKinds) {
        for (const Algorithm algorithm : kAlgorithms) {
          for (const bool in_place : {false, true}) {
            const Case each{kind,
                            reduces(kind) ? Reduction::kSum : Reduction::kNone,
                            DType::kFp64,
                            algorithm,
                            kind == Collective::kAllToAll ? 7001 * static_cast<std::size_t>(ranks)
                                                          : std::size_t{35003},
                            1,
                            in_place};
            const std::string fault = !in_place || may_be_in_place(kind)
                                          ? fault_of(each, *communicators[r])
                                          : std::string();
            faults[r] = faults[r].empty() ? fault : faults[r];
          }
        }
      }
    });
    for (const std::string& fault : faults) {
      CHECK(fault.empty());
    }
  }
}

// ---- bits --------------------------------------------------------------------------------------

/// Numbers of very different size, so that every other order of summing shows in the bits.
std::vector<std::vector<float>> rough_numbers(int ranks, std::size_t count) {
  std::mt19937_64 random(test::test_seed());
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values(static_cast<std::size_t>(ranks));
  for (auto& each : values) {
    for (std::size_t i = 0; i < count; ++i) {
      each.push_back(std::ldexp(normal(random), static_cast<int>(random() % 20)));
    }
  }
  return values;
}

std::vector<float> sum_in_rank_order(const std::vector<std::vector<float>>& values) {
  std::vector<float> sum = values[0];
  for (std::size_t k = 1; k < values.size(); ++k) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += values[k][i];
    }
  }
  return sum;
}

TEST_CASE("sums are taken in rank order, bit for bit, however the message is cut") {
  constexpr std::size_t kCount = 6000;
  for (const int ranks : {2, 3, 8}) {
    const auto values = rough_numbers(ranks, kCount);
    const std::vector<float> expected = sum_in_rank_order(values);
    for (const std::size_t bucket : {1UL, 7UL, 100UL, 1024UL, 1500UL, 6000UL}) {
      auto communicators = make_local_communicators(ranks);
      auto results = values;
      test::spawn_ranks(ranks, [&](int rank) {
        auto& mine = results[static_cast<std::size_t>(rank)];
        for (std::size_t begin = 0; begin < kCount; begin += bucket) {
          communicators[static_cast<std::size_t>(rank)]->run(
              {.reduction = Reduction::kSum,
               .elements = static_cast<std::int64_t>(std::min(bucket, kCount - begin)),
               .in = mine.data() + begin,
               .out = mine.data() + begin});
          begin = bucket == 1 && begin > 200 ? kCount : begin;  // enough of single elements
        }
      });
      for (auto& result : results) {
        result.resize(bucket == 1 ? 200 : kCount);
        CHECK(std::equal(result.begin(), result.end(), expected.begin()));
      }
    }
  }
}

TEST_CASE("all_reduce has the bits of reduce_scatter and all_gather, and of reduce") {
  constexpr int kRanks = 4;
  constexpr std::size_t kCount = 40000;
  const auto values = rough_numbers(kRanks, kCount);
  for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage}) {
    auto communicators = make_local_communicators(kRanks);
    std::vector<std::vector<float>> whole(kRanks), parts(kRanks), at_root(kRanks);
    test::spawn_ranks(kRanks, [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      Communicator& communicator = *communicators[r];
      whole[r] = parts[r] = at_root[r] = values[r];
      float* const x = parts[r].data();
      const std::int64_t shard = kCount / kRanks;
      communicator.run({.reduction = reduction,
                        .elements = kCount,
                        .in = whole[r].data(),
                        .out = whole[r].data()});
      communicator.run({.collective = Collective::kReduceScatter,
                        .reduction = reduction,
                        .elements = shard,
                        .in = x,
                        .out = x + rank * shard});
      communicator.run({.collective = Collective::kAllGather,
                        .elements = shard,
                        .in = x + rank * shard,
                        .out = x});
      communicator.run({.collective = Collective::kReduce,
                        .reduction = reduction,
                        .peer = 2,
                        .elements = kCount,
                        .in = values[r].data(),
                        .out = rank == 2 ? at_root[r].data() : nullptr});
    });
    for (std::size_t r = 0; r < kRanks; ++r) {
      CHECK(whole[r] == whole[0]);
      CHECK(parts[r] == whole[0]);
    }
    CHECK(at_root[2] == whole[0]);
  }
}

TEST_CASE("ring and tree give every rank the same bits, the same ones every time") {
  constexpr std::size_t kCount = 50000;
  for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kTree}) {
    for (const int ranks : {3, 8}) {
      const auto values = rough_numbers(ranks, kCount);
      std::vector<float> first;
      for (int repeat = 0; repeat < 3; ++repeat) {
        auto communicators = make_local_communicators(ranks);
        auto results = values;
        test::spawn_ranks(ranks, [&](int rank) {
          auto& mine = results[static_cast<std::size_t>(rank)];
          communicators[static_cast<std::size_t>(rank)]->run({.reduction = Reduction::kSum,
                                                              .algorithm = algorithm,
                                                              .elements = kCount,
                                                              .in = mine.data(),
                                                              .out = mine.data()});
        });
        first = first.empty() ? results[0] : first;
        for (const auto& result : results) {
          CHECK(result == first);
        }
      }
    }
  }
}

TEST_CASE("a ring adds chunk c from member c on") {
  // 2^24 + 1 + 1 in fp32: two small terms count only if they are added to each other first.
  constexpr int kRanks = 3;
  std::vector<std::vector<float>> values{{0x1p24F, 0x1p24F, 0x1p24F}, {1, 1, 1}, {1, 1, 1}};
  auto communicators = make_local_communicators(kRanks);
  test::spawn_ranks(kRanks, [&](int rank) {
    auto& mine = values[static_cast<std::size_t>(rank)];
    communicators[static_cast<std::size_t>(rank)]->run({.reduction = Reduction::kSum,
                                                        .algorithm = Algorithm::kRing,
                                                        .elements = 3,
                                                        .in = mine.data(),
                                                        .out = mine.data()});
  });
  CHECK(values[0] == std::vector<float>{0x1p24F, 0x1p24F + 2, 0x1p24F});
}

}  // namespace
}  // namespace lockstep::exec
