// Names of enumerators as files and flags spell them: one table per enum, used for reading,
// printing and suggesting. Adding an enumerator means adding one row in names.cpp.
//
//     name_of(DataKind::kFsdp);                      // "fsdp"
//     parse_name<Precision>("bf16");                 // Precision::kBf16
//     nearest("zero4", valid_names<DataKind>());     // "zero1"
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/cluster.h"
#include "core/dtype.h"
#include "core/model.h"
#include "core/strategy.h"
#include "core/training.h"

namespace lockstep {

template <typename Enum>
struct NameRow {
  Enum value{};
  std::string_view name;
};

/// Rows in enumerator order. A value that occurs again has that name as an alias: it is read, not
/// written.
template <typename Enum>
std::span<const NameRow<Enum>> name_table();

template <>
std::span<const NameRow<DType>> name_table<DType>();
template <>
std::span<const NameRow<ModelFamily>> name_table<ModelFamily>();
template <>
std::span<const NameRow<NormKind>> name_table<NormKind>();
template <>
std::span<const NameRow<ActivationKind>> name_table<ActivationKind>();
template <>
std::span<const NameRow<PositionKind>> name_table<PositionKind>();
template <>
std::span<const NameRow<MlpNormKind>> name_table<MlpNormKind>();
template <>
std::span<const NameRow<LinkKind>> name_table<LinkKind>();
template <>
std::span<const NameRow<Precision>> name_table<Precision>();
template <>
std::span<const NameRow<OptimizerKind>> name_table<OptimizerKind>();
template <>
std::span<const NameRow<OptimizerStateCreation>> name_table<OptimizerStateCreation>();
template <>
std::span<const NameRow<Recompute>> name_table<Recompute>();
template <>
std::span<const NameRow<AttentionKind>> name_table<AttentionKind>();
template <>
std::span<const NameRow<LossMean>> name_table<LossMean>();
template <>
std::span<const NameRow<DataKind>> name_table<DataKind>();
template <>
std::span<const NameRow<ZeroFlavour>> name_table<ZeroFlavour>();
template <>
std::span<const NameRow<WrapPolicy>> name_table<WrapPolicy>();
template <>
std::span<const NameRow<Reshard>> name_table<Reshard>();
template <>
std::span<const NameRow<ScheduleKind>> name_table<ScheduleKind>();

/// The name as files spell it; "?" for a value outside the enum.
template <typename Enum>
requires std::is_enum_v<Enum> std::string_view name_of(Enum value) {
  for (const NameRow<Enum>& row : name_table<Enum>()) {
    if (row.value == value) {
      return row.name;
    }
  }
  return "?";
}

/// The enumerator with exactly this name or alias, or none.
template <typename Enum>
std::optional<Enum> parse_name(std::string_view text) {
  for (const NameRow<Enum>& row : name_table<Enum>()) {
    if (row.name == text) {
      return row.value;
    }
  }
  return std::nullopt;
}

/// Every name of the enum without aliases, in enumerator order.
template <typename Enum>
std::vector<std::string_view> valid_names() {
  std::vector<std::string_view> names;
  for (const NameRow<Enum>& row : name_table<Enum>()) {
    if (name_of(row.value) == row.name) {
      names.push_back(row.name);
    }
  }
  return names;
}

/// Equal but for case and the difference of '-' and '_'.
bool same_word(std::string_view a, std::string_view b);

/// Edit distance: insertions, deletions, substitutions and swaps of neighbours (Damerau's optimal
/// string alignment), each counting one; case and the difference of '-' and '_' count nothing.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// How far `text` is from meaning `candidate`: the edit distance, and 1 for a beginning of it of at
/// least three characters ("memory" means "memory_bytes").
std::size_t slip_distance(std::string_view text, std::string_view candidate);

/// The candidate with the smallest slip distance (the first of several); empty without candidates.
std::string nearest(std::string_view text, std::span<const std::string_view> candidates);

/// What to answer to a word that is none of the candidates: `"zero4" is not valid, nearest is
/// "zero1" (one of dp, ddp, ...)`.
std::string not_valid_message(std::string_view text, std::span<const std::string_view> candidates);

/// Text of unknown origin, fit for one line of any terminal: control bytes and bytes that are not
/// ASCII are shown as \xNN, and more than `length` characters are cut.
std::string printable(std::string_view text, std::size_t length);

/// The same in quotes, at most 60 characters of it.
std::string in_quotes(std::string_view text);

}  // namespace lockstep
