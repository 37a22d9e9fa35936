#include "visualizer/app/settings.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace lockstep;
using namespace lockstep::app;

TEST_CASE("settings come back from their text") {
  Settings settings;
  settings.language = ui::Language::kChinese;
  settings.theme = ui::ThemeId::kContrast;
  settings.scale = 1.75F;
  settings.left = 0.3125F;
  settings.recent = {"/a b/scenario.json", "x = y"};
  const Settings again = parse_settings(settings_text(settings));
  CHECK(again.language == settings.language);
  CHECK(again.theme == settings.theme);
  CHECK(again.scale == settings.scale);
  CHECK(again.left == settings.left);
  CHECK(again.recent == settings.recent);
}

TEST_CASE("settings that make no sense are passed over") {
  const Settings settings = parse_settings(
      "scale = 900\nscale = nan\nleft = -1\ntheme = pink\nlanguage = xx\nfuture = 1\nno equals\n");
  CHECK(settings.scale == Settings().scale);
  CHECK(settings.left == Settings().left);
  CHECK(settings.theme == Settings().theme);
  CHECK(settings.language == Settings().language);
}

TEST_CASE("a file that is opened again moves to the front of ten recent ones") {
  Settings settings;
  for (int i = 0; i < 12; ++i) {
    settings.add_recent(std::to_string(i));
  }
  settings.add_recent("5");
  CHECK(settings.recent.size() == 10);
  CHECK(settings.recent.front() == "5");
  CHECK(settings.recent.back() == "2");
}

TEST_CASE("settings are kept in a folder that is made for them") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("not/there/yet/view.conf");
  Settings settings;
  settings.scale = 2;
  CHECK(load_settings(path).scale == 1);
  REQUIRE(save_settings(path, settings));
  CHECK(load_settings(path).scale == 2);
}
