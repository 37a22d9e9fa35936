#include "visualizer/ui/reasons.h"

#include "core/legality.h"
#include "visualizer/ui/state.h"

namespace lockstep::ui {
namespace {

struct Row {
  std::string_view rule;
  const char* chinese;
};

constexpr Row kRows[] = {
#define LOCKSTEP_REASON(rule, chinese) {rule, chinese},
#include "visualizer/ui/strings/reasons.def"
#undef LOCKSTEP_REASON
};

const char* english_of(std::string_view id) {
  for (const LegalityRule& rule : legality_rules()) {
    if (rule.id == id) {
      return rule.reason;
    }
  }
  return nullptr;
}

}  // namespace

std::string reason_text(std::string_view message) {
  return reason_text(message, state().language);
}

std::string reason_text(std::string_view message, Language language) {
  std::string text(message);
  if (language == Language::kEnglish) {
    return text;
  }
  for (const Row& row : kRows) {
    const char* const english = english_of(row.rule);
    const std::size_t at = english == nullptr ? std::string::npos : text.find(english);
    if (at != std::string::npos) {
      text.replace(at, std::string_view(english).size(), row.chinese);
    }
  }
  return text;
}

}  // namespace lockstep::ui
