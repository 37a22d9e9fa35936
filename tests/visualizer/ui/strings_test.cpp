#include "visualizer/ui/strings.h"

#include <algorithm>
#include <string>

#include <imgui.h>
#include <imgui_internal.h>

#include "tests/support/catch.h"
#include "visualizer/ui/fonts.h"

using namespace lockstep::ui;

namespace {

template <typename Check>
void for_every_string(Check&& check) {
  for (int id = 0; id < kStringCount; ++id) {
    for (int language = 0; language < kLanguageCount; ++language) {
      check(static_cast<S>(id),
            std::string(text_of(static_cast<S>(id), static_cast<Language>(language))));
    }
  }
}

}  // namespace

TEST_CASE("every string is there in every language") {
  for_every_string([](S id, const std::string& text) {
    INFO(text_of(id, Language::kEnglish));
    CHECK_FALSE(text.empty());
  });
}

TEST_CASE("translations have as many values as the English text") {
  for (int i = 0; i < kStringCount; ++i) {
    const auto id = static_cast<S>(i);
    const auto places = [&](Language language) {
      const std::string text = text_of(id, language);
      return std::count(text.begin(), text.end(), '{');
    };
    INFO(text_of(id, Language::kEnglish));
    CHECK(places(Language::kEnglish) == places(Language::kChinese));
  }
}

TEST_CASE("the font has every character of every string; scripts/font makes it anew") {
  ImFontAtlas atlas;
  const Fonts fonts = build_fonts(atlas, 1);
  for (const ImFont* font : {fonts.text, fonts.small, fonts.large}) {
    for_every_string([&](S id, const std::string& text) {
      INFO(text_of(id, Language::kEnglish) << ": run scripts/font");
      for (const char* at = text.data(); at < text.data() + text.size();) {
        unsigned int character = 0;
        at += ImTextCharFromUtf8(&character, at, text.data() + text.size());
        CHECK(font->FindGlyphNoFallback(static_cast<ImWchar>(character)) != nullptr);
      }
    });
  }
}

TEST_CASE("the font has what numbers and signs need") {
  ImFontAtlas atlas;
  const Fonts fonts = build_fonts(atlas, 2);
  for (const int character :
       {0x20, 0x7e, 0xb5, 0xd7, 0x2026, 0x2190, 0x2193, 0x2212, 0x25b2, 0x25bc}) {
    INFO(character);
    CHECK(fonts.text->FindGlyphNoFallback(static_cast<ImWchar>(character)) != nullptr);
  }
  CHECK(fonts.text->FontSize == 30);
}
