// Strings: every text of the window, in every language. The table lies in ui/strings/*.def, one
// file per part of the window; a row is
//
//     LOCKSTEP_STRING(kOpen, "Open", "打开")
//
// After changing one run scripts/font, which puts the characters that are used into the font.
//
//     tr(S::kOpen)                       of the window's language
//     trf(S::kRanksOf, 3, 8)             with values, by fmt's rules
//     term("forward")                    what a model called in English, where the table has it
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace lockstep::ui {

enum class Language : std::uint8_t { kEnglish, kChinese };
inline constexpr int kLanguageCount = 2;
/// "en", "zh"
std::string_view name_of(Language language);
std::optional<Language> parse_language(std::string_view name);

enum class S : std::uint16_t {
#define LOCKSTEP_STRING(id, english, chinese) id,
#include "visualizer/ui/strings/all.def"
#undef LOCKSTEP_STRING
  kCount
};
inline constexpr int kStringCount = static_cast<int>(S::kCount);

const char* text_of(S id, Language language);
const char* tr(S id);
/// The table's row whose English text this is, in the window's language; else the text itself.
std::string_view term(std::string_view english);

template <typename... Values>
std::string trf(S id, const Values&... values) {
  return fmt::format(fmt::runtime(tr(id)), values...);
}

}  // namespace lockstep::ui
