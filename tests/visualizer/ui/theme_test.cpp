#include "visualizer/ui/theme.h"

#include <cmath>
#include <set>

#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::ui;

TEST_CASE("black on white has a contrast of 21, a colour on itself of 1, #777 on white of 4.48") {
  CHECK(contrast(IM_COL32_BLACK, IM_COL32_WHITE) == Approx(21));
  CHECK(contrast(IM_COL32(10, 20, 30, 255), IM_COL32(10, 20, 30, 255)) == Approx(1));
  // The grey that just fails on white: W3C, "Understanding SC 1.4.3".
  CHECK(contrast(IM_COL32(0x77, 0x77, 0x77, 255), IM_COL32_WHITE) == Approx(4.48).margin(0.005));
}

TEST_CASE("every text of every theme has a contrast of at least 4.5 on its ground") {
  for (int i = 0; i < kThemeCount; ++i) {
    const Theme& theme = theme_of(static_cast<ThemeId>(i));
    for (const TextPair& pair : text_pairs(theme)) {
      INFO(name_of(theme.id) << ": " << pair.name);
      CHECK(contrast(pair.text, pair.ground) >= 4.5);
      CHECK((pair.ground >> 24U) == 255);
    }
  }
}

TEST_CASE("no two kinds of work share colour and hatch, nor a letter") {
  for (int i = 0; i < kThemeCount; ++i) {
    const Theme& theme = theme_of(static_cast<ThemeId>(i));
    std::set<std::pair<ImU32, Hatch>> looks;
    std::set<char> letters;
    for (int paint = 0; paint < view::kPaintCount; ++paint) {
      const Look& look = theme.look(static_cast<view::Paint>(paint));
      looks.insert({look.fill, look.hatch});
      letters.insert(letter_of(static_cast<view::Paint>(paint)));
    }
    CHECK(looks.size() == view::kPaintCount);
    CHECK(letters.size() == view::kPaintCount);
  }
}

TEST_CASE("names of themes are read back") {
  for (int i = 0; i < kThemeCount; ++i) {
    CHECK(parse_theme(name_of(static_cast<ThemeId>(i))) == static_cast<ThemeId>(i));
  }
  CHECK_FALSE(parse_theme("pink"));
}
