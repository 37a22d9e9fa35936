#include "core/planner/data/buckets.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/scale.h"

namespace lockstep {
namespace {

using Sizes = std::vector<std::int64_t>;
using Members = std::vector<std::vector<std::int32_t>>;

constexpr std::int64_t kFp32 = 4;

/// Parameters of a model in elements, in registration order: a Linear's weight before its bias.
class Model {
 public:
  Model& tensor(std::int64_t elements) {
    sizes_.push_back(elements);
    return *this;
  }
  Model& linear(std::int64_t in, std::int64_t out) { return tensor(in * out).tensor(out); }
  Model& norm(std::int64_t width) { return tensor(width).tensor(width); }

  const Sizes& elements() const { return sizes_; }

 private:
  Sizes sizes_;
};

Model linear8() {
  Model model;
  model.linear(512, 512).linear(512, 2048).linear(2048, 512).linear(512, 4096);
  return model.linear(4096, 512).linear(512, 2048).linear(2048, 2048).linear(2048, 64);
}

Model batchnorm() {
  Model model;
  return model.linear(512, 512).norm(512).linear(512, 2048).linear(2048, 512).linear(8, 8);
}

/// GPT-2 124M: 12 blocks of width 768, 1024 positions, 50257 tokens, head tied to wte.
Model gpt2() {
  constexpr std::int64_t kWidth = 768;
  Model model;
  model.tensor(50257 * kWidth).tensor(1024 * kWidth);  // wte, wpe
  for (int block = 0; block < 12; ++block) {
    model.norm(kWidth);                                           // ln_1
    model.linear(kWidth, 3 * kWidth).linear(kWidth, kWidth);      // attn.c_attn, attn.c_proj
    model.norm(kWidth);                                           // ln_2
    model.linear(kWidth, 4 * kWidth).linear(4 * kWidth, kWidth);  // mlp.c_fc, mlp.c_proj
  }
  return model.norm(kWidth);  // ln_f
}

Model model_named(const std::string& name) {
  if (name == "linear8") {
    return linear8();
  }
  if (name == "batchnorm") {
    return batchnorm();
  }
  REQUIRE(name == "gpt2");
  return gpt2();
}

DdpBucketOptions options_named(const std::string& name) {
  DdpBucketOptions options;
  options.find_unused_parameters = name == "find_unused_parameters";
  options.static_graph = name == "static_graph";
  if (name == "bucket_cap_mb=4") {
    options.cap_bytes = 4 * 1024 * 1024;
  } else {
    REQUIRE((name == "default" || options.find_unused_parameters || options.static_graph));
  }
  return options;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

/// Sizes of the buckets as the golden file writes them: MiB to 3 decimals, or elements.
std::string sizes_text(const BucketList& list, const std::string& unit) {
  std::string text;
  for (const Bucket& bucket : list.buckets) {
    char number[32];
    if (unit == "MiB") {
      std::snprintf(number, sizeof number, "%.3f", static_cast<double>(bucket.size) / 1048576.0);
    } else {
      std::snprintf(number, sizeof number, "%lld", static_cast<long long>(bucket.size / kFp32));
    }
    text += (text.empty() ? "" : " ") + std::string(number);
  }
  return text;
}

Sizes in_bytes(const Model& model) {
  Sizes bytes = model.elements();
  for (std::int64_t& size : bytes) {
    size *= kFp32;
  }
  return bytes;
}

Members members_of(const BucketList& list) {
  Members members;
  for (int k = 0; k < list.count(); ++k) {
    const auto bucket = list.members_of(k);
    members.emplace_back(bucket.begin(), bucket.end());
  }
  return members;
}

/// Second algorithm: compute_bucket_assignment_by_size as PyTorch writes it, with an accumulator
/// and a limit per key in a map. Left-overs by their first tensor.
Members assigned_by_map(const BucketInput& input, const Sizes& limits) {
  struct Accumulator {
    std::vector<std::int32_t> indices;
    std::int64_t size = 0;
    std::size_t limit = 0;
    std::size_t opened = 0;
  };
  Members result;
  std::map<std::int32_t, Accumulator> accumulators;
  for (std::size_t i = 0; i < input.sizes.size(); ++i) {
    const std::int32_t index = input.order.empty() ? static_cast<std::int32_t>(i) : input.order[i];
    Accumulator& bucket = accumulators[input.keys[static_cast<std::size_t>(index)]];
    if (bucket.indices.empty()) {
      bucket.opened = i;
    }
    bucket.indices.push_back(index);
    bucket.size += input.sizes[static_cast<std::size_t>(index)];
    if (bucket.size >= limits[bucket.limit]) {
      result.push_back(bucket.indices);
      bucket.indices.clear();
      bucket.size = 0;
      bucket.limit = std::min(bucket.limit + 1, limits.size() - 1);
    }
  }
  std::map<std::size_t, std::vector<std::int32_t>> left_over;
  for (const auto& [key, bucket] : accumulators) {
    if (!bucket.indices.empty()) {
      left_over[bucket.opened] = bucket.indices;
    }
  }
  for (const auto& [opened, indices] : left_over) {
    result.push_back(indices);
  }
  if (input.order.empty()) {
    std::sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
      return *std::min_element(a.begin(), a.end()) < *std::min_element(b.begin(), b.end());
    });
  }
  return result;
}

/// A random model with parameters of several dtypes and a random ready order.
struct RandomInput {
  explicit RandomInput(std::mt19937_64& random) {
    sizes.resize(random() % 40);
    for (std::size_t p = 0; p < sizes.size(); ++p) {
      sizes[p] = static_cast<std::int64_t>(random() % 30);
      keys.push_back(static_cast<std::int32_t>(random() % 3));
      order.push_back(static_cast<std::int32_t>(p));
    }
    std::shuffle(order.begin(), order.end(), random);
  }
  BucketInput registered() const { return {sizes, keys, {}}; }
  BucketInput ready() const { return {sizes, keys, order}; }

  Sizes sizes;
  std::vector<std::int32_t> keys;
  std::vector<std::int32_t> order;
};

/// All parameters once; inside a bucket one key, the order of the walk, and the size claimed.
void check_cover(const BucketList& list,
                 const RandomInput& input,
                 const std::vector<std::int32_t>& walk) {
  std::vector<int> place(walk.size());
  for (std::size_t i = 0; i < walk.size(); ++i) {
    place[static_cast<std::size_t>(walk[i])] = static_cast<int>(i);
  }
  std::vector<int> seen(walk.size(), 0);
  for (int k = 0; k < list.count(); ++k) {
    const Bucket& bucket = list.buckets[static_cast<std::size_t>(k)];
    const auto members = list.members_of(k);
    REQUIRE(!members.empty());
    std::int64_t size = 0;
    int last = -1;
    for (const std::int32_t member : members) {
      const auto parameter = static_cast<std::size_t>(member);
      ++seen.at(parameter);
      CHECK(input.keys[parameter] == bucket.key);
      CHECK(place[parameter] > last);
      last = place[parameter];
      size += input.sizes[parameter];
    }
    CHECK(bucket.size == size);
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int count) { return count == 1; }));
}

}  // namespace

TEST_CASE("DDP buckets are those that PyTorch makes") {
  const test::Golden golden = test::read_golden("ddp_buckets.csv");
  REQUIRE(golden.lines.size() == 11);
  BucketList list;
  for (std::size_t i = 1; i < golden.lines.size(); ++i) {
    const std::vector<std::string> row = split(golden.lines[i], ',');
    REQUIRE(row.size() == 5);
    const Model model = model_named(row[0]);
    const DdpBucketOptions options = options_named(row[1]);
    const Sizes bytes = in_bytes(model);
    std::vector<std::int32_t> ready;
    reverse_registration(static_cast<std::int32_t>(bytes.size()), ready);
    for (const std::string& pass : split(row[2], ' ')) {
      CAPTURE(golden.lines[i], pass);
      ddp_buckets(ddp_bucketing(options, std::stoi(pass)), options, {bytes, {}, ready}, list);
      CHECK(sizes_text(list, row[3]) == row[4]);
    }
  }
}

TEST_CASE("the models behind the golden buckets have the published parameter counts") {
  const auto count = [](const Model& model) {
    std::int64_t sum = 0;
    for (const std::int64_t elements : model.elements()) {
      sum += elements;
    }
    return sum;
  };
  CHECK(count(gpt2()) == 124'439'808);
  CHECK(gpt2().elements().size() == 148);
  CHECK(count(batchnorm()) == 2'363'464);
  CHECK(batchnorm().elements().size() == 10);
}

TEST_CASE("tied embedding: GPT-2's last bucket holds 35 % of all bytes and its own wte last") {
  const Sizes bytes = in_bytes(gpt2());
  std::vector<std::int32_t> ready;
  reverse_registration(static_cast<std::int32_t>(bytes.size()), ready);
  BucketList list;
  ddp_buckets(DdpBucketing::kRebuilt, {}, {bytes, {}, ready}, list);
  CHECK(list.members_of(list.count() - 1).back() == 0);
  CHECK(static_cast<double>(list.buckets.back().size) / (4 * 124'439'808.0) ==
        Approx(0.35).margin(0.005));
}

TEST_CASE("the single bucket of the first pass keeps registration order, one bucket per dtype") {
  const Sizes bytes{4, 2, 8, 2};
  const std::vector<std::int32_t> dtypes{0, 1, 0, 1};
  const std::vector<std::int32_t> ready{3, 2, 1, 0};
  BucketList list;
  ddp_buckets(DdpBucketing::kSingle, {}, {bytes, dtypes, ready}, list);
  // Listed by first parameter, then the list is reversed: dtype 1 comes first.
  CHECK(members_of(list) == Members{{1, 3}, {0, 2}});
}

TEST_CASE("find_unused_parameters reduces the bucket of the first parameters last") {
  BucketList list;
  const DdpBucketOptions options{.cap_bytes = 10, .find_unused_parameters = true};
  const Sizes bytes{6, 6, 6, 6, 6};
  ddp_buckets(DdpBucketing::kRegistration, options, {bytes, {}, {}}, list);
  CHECK(members_of(list) == Members{{4}, {2, 3}, {0, 1}});
}

TEST_CASE("the pass of the rebuild and the number of variants follow the options") {
  const DdpBucketOptions normal;
  const DdpBucketOptions fixed{.static_graph = true};
  const DdpBucketOptions unused{.find_unused_parameters = true};
  const DdpBucketOptions both{.find_unused_parameters = true, .static_graph = true};
  const DdpBucketOptions ideal{.ideal = true};
  for (std::int64_t pass = 0; pass < 6; ++pass) {
    CAPTURE(pass);
    CHECK(ddp_rebuilds_before(normal, pass) == (pass == 1));
    CHECK(ddp_rebuilds_before(fixed, pass) == (pass == 2));
    CHECK(ddp_rebuilds_before(both, pass) == (pass == 2));
    CHECK_FALSE(ddp_rebuilds_before(unused, pass));
    CHECK_FALSE(ddp_rebuilds_before(ideal, pass));
    CHECK(ddp_bucketing(ideal, pass) == DdpBucketing::kIdeal);
  }
  CHECK(ddp_variant_count(normal) == 3);
  CHECK(ddp_variant_count(fixed) == 4);
  CHECK(ddp_variant_count(unused) == 1);
  CHECK(ddp_variant_count(ideal) == 1);
  // Four micro-batches that all synchronise: the rebuild falls into the first step.
  CHECK(ddp_variant_count(normal, 4) == 2);
  CHECK(ddp_variant_count(fixed, 2) == 3);  // passes 0 1 | 2 3 | steady
}

TEST_CASE("a bucket is filled first and closed after, so it may exceed its limit") {
  BucketList list;
  const Sizes bytes{9, 9, 1, 30, 5};
  compute_bucket_assignment({bytes}, Sizes{10, 20}, list);
  // 9 < 10, 18 >= 10: closed; then 1 < 20, 31 >= 20: closed; 5 is left over.
  CHECK(members_of(list) == Members{{0, 1}, {2, 3}, {4}});
}

TEST_CASE("DeepSpeed flushes before the limit is exceeded and sends a larger parameter alone") {
  BucketList list;
  const Sizes elements{6, 4, 1, 12, 10, 3};
  fill_buckets({elements}, 10, list);
  CHECK(members_of(list) == Members{{0, 1}, {2}, {3}, {4}, {5}});
}

TEST_CASE("ideal buckets are as full as their cap allows, without exceeding it") {
  const Sizes bytes = in_bytes(gpt2());
  std::vector<std::int32_t> ready;
  reverse_registration(static_cast<std::int32_t>(bytes.size()), ready);
  BucketList list;
  ddp_buckets(DdpBucketing::kIdeal, {}, {bytes, {}, ready}, list);
  std::int64_t before = kDdpBucketBytes;
  for (int k = 0; k < list.count(); ++k) {
    const Bucket& bucket = list.buckets[static_cast<std::size_t>(k)];
    CHECK((bucket.size <= kDdpBucketBytes || bucket.count == 1));
    // The parameter that opens a bucket had no room in the one before.
    CHECK(before + bytes[static_cast<std::size_t>(list.members_of(k).front())] > kDdpBucketBytes);
    before = bucket.size;
  }
}

TEST_CASE("Megatron buckets run backwards and close at max(40 M, dp M) elements by default") {
  BucketList list;
  const std::int64_t million = 1'000'000;
  const Sizes elements{50 * million, 30 * million, 20 * million, 39 * million};
  megatron_buckets({.data_parallel = 8}, {elements}, list);
  CHECK(members_of(list) == Members{{3, 2}, {1, 0}});
  megatron_buckets({.data_parallel = 64}, {elements}, list);
  CHECK(members_of(list) == Members{{3, 2, 1}, {0}});
  megatron_buckets({.data_parallel = 8, .single_bucket = true}, {elements}, list);
  CHECK(members_of(list) == Members{{3, 2, 1, 0}});
  CHECK(megatron_bucket_elements(16) == 40 * million);
  CHECK(megatron_bucket_elements(1024) == 1024 * million);
}

TEST_CASE("with the distributed optimizer the padding between parameters counts towards the cap") {
  BucketList list;
  const Sizes elements{10, 20, 30};
  MegatronBucketOptions options{.data_parallel = 2, .cap_elements = 70};
  megatron_buckets(options, {elements}, list);
  CHECK(members_of(list) == Members{{2, 1, 0}});  // 60 < 70
  options.distributed_optimizer = true;
  megatron_buckets(options, {elements}, list);
  CHECK(members_of(list) == Members{{2, 1}, {0}});  // 20 starts at 64 and ends at 84 >= 70
}

TEST_CASE("a tied embedding has a bucket of its own with the distributed optimizer only") {
  BucketList list;
  const Sizes elements{100, 10, 10, 10};
  const std::vector<std::uint8_t> tied{0, 0, 1, 0};
  MegatronBucketOptions options{.data_parallel = 2, .tied = tied};
  megatron_buckets(options, {elements}, list);
  CHECK(members_of(list) == Members{{3, 2, 1, 0}});
  options.distributed_optimizer = true;
  megatron_buckets(options, {elements}, list);
  CHECK(members_of(list) == Members{{3}, {2}, {1, 0}});
}

TEST_CASE("bucket assignment equals PyTorch's algorithm on random parameters") {
  std::mt19937_64 random(test::test_seed());
  BucketList list;
  for (int round = 0; round < test::scaled(500); ++round) {
    const RandomInput input(random);
    const Sizes limits{static_cast<std::int64_t>(1 + random() % 50),
                       static_cast<std::int64_t>(1 + random() % 200)};
    CAPTURE(round, input.sizes, input.keys, input.order, limits);
    compute_bucket_assignment(input.registered(), limits, list);
    CHECK(members_of(list) == assigned_by_map(input.registered(), limits));
    if (!input.sizes.empty()) {
      compute_bucket_assignment(input.ready(), limits, list);
      CHECK(members_of(list) == assigned_by_map(input.ready(), limits));
    }
  }
}

TEST_CASE("buckets of every kind keep the order of the walk and cover all parameters") {
  std::mt19937_64 random(test::test_seed());
  BucketList list;
  for (int round = 0; round < test::scaled(300); ++round) {
    const RandomInput input(random);
    const auto limit = static_cast<std::int64_t>(1 + random() % 100);
    CAPTURE(round, input.sizes, input.keys, input.order, limit);
    std::vector<std::int32_t> registered(input.sizes.size());
    for (std::size_t p = 0; p < registered.size(); ++p) {
      registered[p] = static_cast<std::int32_t>(p);
    }
    std::vector<std::int32_t> backwards;
    reverse_registration(static_cast<std::int32_t>(registered.size()), backwards);

    const DdpBucketOptions options{.cap_bytes = limit};
    for (const DdpBucketing bucketing : {DdpBucketing::kSingle, DdpBucketing::kRegistration}) {
      ddp_buckets(bucketing, options, input.ready(), list);
      check_cover(list, input, registered);
    }
    for (const DdpBucketing bucketing : {DdpBucketing::kRebuilt, DdpBucketing::kIdeal}) {
      ddp_buckets(bucketing, options, input.ready(), list);
      check_cover(list, input, input.order);
    }
    for (const bool distributed : {false, true}) {
      megatron_buckets(
          {.distributed_optimizer = distributed, .cap_elements = limit}, input.registered(), list);
      check_cover(list, input, backwards);
    }
    fill_buckets(input.ready(), limit, list);
    for (const Bucket& bucket : list.buckets) {
      // Only a single parameter may exceed the limit.
      CHECK((bucket.size <= limit || bucket.count == 1));
    }
  }
}

TEST_CASE("a key that nobody can have is refused") {
  BucketList list;
  const Sizes sizes{1, 2};
  CHECK_THROWS_AS(fill_buckets({sizes, std::vector<std::int32_t>{0, 64}, {}}, 1, list),
                  InternalError);
  CHECK_THROWS_AS(ddp_buckets(DdpBucketing::kRebuilt, {}, {sizes}, list), InternalError);
}

}  // namespace lockstep
