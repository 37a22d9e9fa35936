#include "visualizer/ui/reasons.h"

#include <string>

#include <imgui.h>
#include <imgui_internal.h>

#include "core/legality.h"
#include "tests/support/catch.h"
#include "visualizer/ui/fonts.h"

namespace lockstep::ui {
namespace {

TEST_CASE("every rule of the legality table has its reason in Chinese, in the font's characters") {
  ImFontAtlas atlas;
  const Fonts fonts = build_fonts(atlas, 1);
  for (const LegalityRule& rule : legality_rules()) {
    const std::string text = reason_text(rule.reason, Language::kChinese);
    INFO(rule.id << ": " << text << "; run scripts/font");
    CHECK(text != rule.reason);
    for (const char* at = text.data(); at < text.data() + text.size();) {
      unsigned int character = 0;
      at += ImTextCharFromUtf8(&character, at, text.data() + text.size());
      CHECK(fonts.text->FindGlyphNoFallback(static_cast<ImWchar>(character)) != nullptr);
    }
  }
}

TEST_CASE("numbers behind a reason stay, and so does what is no reason") {
  const std::string message =
      "strategy.tensor.degree: must divide model.heads: a query head is computed by one rank (tp "
      "3, heads 32); model.layers: must be at least 1";
  CHECK(reason_text(message, Language::kEnglish) == message);
  CHECK(
      reason_text(message, Language::kChinese) ==
      "strategy.tensor.degree: 必须整除 model.heads：一个查询头由一个 rank 计算 (tp 3, heads 32); "
      "model.layers: must be at least 1");
}

}  // namespace
}  // namespace lockstep::ui
