#include "visualizer/ui/strings.h"

#include <unordered_map>

#include "visualizer/ui/state.h"

namespace lockstep::ui {
namespace {

struct Row {
  const char* english;
  const char* chinese;
};

constexpr std::array<Row, kStringCount> kRows{{
#define LOCKSTEP_STRING(id, english, chinese) {english, chinese},
#include "visualizer/ui/strings/all.def"
#undef LOCKSTEP_STRING
}};

std::unordered_map<std::string_view, S> by_english() {
  std::unordered_map<std::string_view, S> ids;
  for (int i = 0; i < kStringCount; ++i) {
    ids.emplace(kRows[static_cast<std::size_t>(i)].english, static_cast<S>(i));
  }
  return ids;
}

}  // namespace

std::string_view name_of(Language language) {
  return language == Language::kEnglish ? "en" : "zh";
}

std::optional<Language> parse_language(std::string_view name) {
  for (int i = 0; i < kLanguageCount; ++i) {
    if (name_of(static_cast<Language>(i)) == name) {
      return static_cast<Language>(i);
    }
  }
  return std::nullopt;
}

const char* text_of(S id, Language language) {
  const Row& row = kRows[static_cast<std::size_t>(id)];
  return language == Language::kEnglish ? row.english : row.chinese;
}

const char* tr(S id) {
  return text_of(id, state().language);
}

std::string_view term(std::string_view english) {
  static const std::unordered_map<std::string_view, S> ids = by_english();
  const auto it = ids.find(english);
  return it == ids.end() ? english : std::string_view(tr(it->second));
}

}  // namespace lockstep::ui
