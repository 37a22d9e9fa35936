#include "visualizer/options.h"

#include "core/error.h"
#include "tests/support/catch.h"

using namespace lockstep;

TEST_CASE("the command line of lockstep-view is read") {
  const ViewOptions options = parse_view_options({"--shot",
                                                  "out.png",
                                                  "--view=timeline",
                                                  "--size",
                                                  "640x480",
                                                  "--theme",
                                                  "light",
                                                  "--lang",
                                                  "zh",
                                                  "--scale",
                                                  "1.5",
                                                  "--cursor",
                                                  "12.5ms",
                                                  "run/"});
  CHECK(options.shot == "out.png");
  CHECK(options.view == "timeline");
  CHECK(options.width == 640);
  CHECK(options.height == 480);
  CHECK(options.theme == ui::ThemeId::kLight);
  CHECK(options.language == ui::Language::kChinese);
  CHECK(options.scale == 1.5F);
  CHECK(options.cursor_time == 12'500'000);
  CHECK(options.file == "run/");
  CHECK(parse_view_options({"--cursor", "3,4"}).cursor_pixel == std::pair(3, 4));
}

TEST_CASE("a command line that makes no sense is a usage error in one line") {
  const std::vector<std::vector<std::string>> lines{{"--shot"},
                                                    {"--sice", "1x1"},
                                                    {"--size", "640"},
                                                    {"--size", "1x1"},
                                                    {"--size", "640x99999"},
                                                    {"--theme", "pink"},
                                                    {"--lang", "fr"},
                                                    {"--scale", "nan"},
                                                    {"--scale", "9"},
                                                    {"--cursor", "here"},
                                                    {"--cursor", "-1,2"},
                                                    {"a.json", "b.json", "c.json"}};
  for (const std::vector<std::string>& line : lines) {
    INFO(line.front() << " " << line.back());
    CHECK_THROWS_AS(parse_view_options(line), UsageError);
  }
}
