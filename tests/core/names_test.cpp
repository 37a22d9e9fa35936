#include "core/names.h"

#include <array>
#include <set>

#include "tests/support/catch.h"

using namespace lockstep;

namespace {

/// Every name reads back as its value, no name occurs twice, values are 0, 1, 2, ... in order.
template <typename Enum>
void check_table(std::size_t count) {
  std::set<std::string_view> names;
  std::size_t own = 0;
  for (const NameRow<Enum>& row : name_table<Enum>()) {
    INFO(row.name);
    CHECK(parse_name<Enum>(row.name) == row.value);
    CHECK(names.insert(row.name).second);
    if (name_of(row.value) == row.name) {
      CHECK(static_cast<std::size_t>(row.value) == own);
      ++own;
    }
  }
  CHECK(own == count);
  CHECK(valid_names<Enum>().size() == count);
}

}  // namespace

TEST_CASE("Every enumerator has one name that reads back") {
  check_table<DType>(kDTypeCount);
  check_table<ModelFamily>(2);
  check_table<NormKind>(2);
  check_table<ActivationKind>(3);
  check_table<PositionKind>(3);
  check_table<MlpNormKind>(3);
  check_table<LinkKind>(5);
  check_table<Precision>(6);
  check_table<OptimizerKind>(4);
  check_table<OptimizerStateCreation>(2);
  check_table<Recompute>(3);
  check_table<AttentionKind>(2);
  check_table<LossMean>(2);
  check_table<DataKind>(7);
  check_table<ZeroFlavour>(4);
  check_table<WrapPolicy>(3);
  check_table<Reshard>(3);
  check_table<ScheduleKind>(kScheduleKindCount);
}

TEST_CASE("Names are the words of the command contract") {
  CHECK(name_of(DataKind::kZero3) == "zero3");
  CHECK(name_of(Precision::kAutocast) == "autocast");
  CHECK(name_of(DType::kBf16) == "bf16");
  CHECK(parse_name<OptimizerKind>("adam") == OptimizerKind::kAdamW);
  CHECK_FALSE(parse_name<Precision>("BF16").has_value());
  CHECK(name_of(static_cast<Precision>(200)) == "?");
}

TEST_CASE("Edit distance counts insertions, deletions, substitutions and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);  // the textbook pair
  CHECK(edit_distance("lenght", "length") == 1);   // one swap
  CHECK(edit_distance("ca", "abc") == 3);          // optimal string alignment; full Damerau has 2
  CHECK(edit_distance("Seq-Len", "seq_len") == 0);
}

TEST_CASE("Edit distance is symmetric, zero only for equal words, and obeys simple bounds") {
  const std::array<std::string_view, 6> words = {"ddp", "fsdp", "hsdp", "zero1", "zero2", "tensor"};
  for (const std::string_view a : words) {
    for (const std::string_view b : words) {
      CHECK(edit_distance(a, b) == edit_distance(b, a));
      CHECK((edit_distance(a, b) == 0) == (a == b));
      CHECK(edit_distance(a, b) <= std::max(a.size(), b.size()));
    }
  }
}

TEST_CASE("Very long words are compared without overrunning anything") {
  const std::string a(100'000, 'a');
  const std::string b(100'000, 'b');
  CHECK(edit_distance(a, a) == 0);
  CHECK(edit_distance(a, b) == 80);
}

TEST_CASE("The nearest name is suggested, the first of equals, none of none") {
  const std::vector<std::string_view> kinds = valid_names<DataKind>();
  CHECK(nearest("zero4", kinds) == "zero1");
  CHECK(nearest("fdsp", kinds) == "fsdp");
  const std::array<std::string_view, 3> sizes = {"mem", "memory_bytes", "memory_bandwidth"};
  CHECK(nearest("memory", sizes) == "memory_bytes");  // a beginning is nearer than "mem"
  CHECK(nearest("x", {}) == "");
  CHECK(not_valid_message("fdsp", kinds) ==
        "\"fdsp\" is not valid, nearest is \"fsdp\" (one of dp, ddp, zero1, zero2, zero3, fsdp, "
        "hsdp)");
}

TEST_CASE("Quoted text stays on one line and short") {
  CHECK(in_quotes("a\nb") == "\"a\\x0Ab\"");
  CHECK(in_quotes("\xff") == "\"\\xFF\"");
  CHECK(in_quotes(std::string(1000, 'x')).size() < 70);
}
