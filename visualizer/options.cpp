#include "visualizer/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"
#include "core/names.h"
#include "visualizer/app/settings.h"

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 12> kFlags{"--shot",
                                                  "--frames",
                                                  "--view",
                                                  "--scenario",
                                                  "--size",
                                                  "--theme",
                                                  "--lang",
                                                  "--scale",
                                                  "--cursor",
                                                  "--keys",
                                                  "--help",
                                                  "--version"};

[[noreturn]] void refuse(std::string_view flag, const std::string& value, std::string_view form) {
  throw UsageError("flags", fmt::format("{} {} is not {}", flag, in_quotes(value), form));
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::pair<int, int>> pair_of(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::optional<double> first = number(text.substr(0, at));
  const std::optional<double> second = number(text.substr(at + 1));
  constexpr double kMost = 16384;
  if (!first || !second || *first < 0 || *second < 0 || *first > kMost || *second > kMost) {
    return std::nullopt;
  }
  return std::pair(static_cast<int>(*first), static_cast<int>(*second));
}

/// "12.5ms"
std::optional<std::int64_t> time_of(std::string_view text) {
  struct Unit {
    std::string_view name;
    double nanoseconds;
  };
  constexpr std::array<Unit, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) {
      continue;
    }
    const std::optional<double> value = number(text.substr(0, text.size() - unit.name.size()));
    if (value && *value >= 0 && *value * unit.nanoseconds < 9e18) {
      return std::llround(*value * unit.nanoseconds);
    }
  }
  return std::nullopt;
}

void set_size(ViewOptions& options, const std::string& value) {
  const std::optional<std::pair<int, int>> size = pair_of(value, 'x');
  if (!size || size->first < 64 || size->second < 64) {
    refuse("--size", value, "WIDTHxHEIGHT, each 64 to 16384");
  }
  options.width = size->first;
  options.height = size->second;
}

void set_cursor(ViewOptions& options, const std::string& value) {
  options.cursor_pixel = pair_of(value, ',');
  options.cursor_time = time_of(value);
  if (!options.cursor_pixel && !options.cursor_time) {
    refuse("--cursor", value, "X,Y in pixels or a time such as 12.5ms");
  }
}

void set_scale(ViewOptions& options, const std::string& value) {
  const std::optional<double> scale = number(value);
  if (!scale || *scale < static_cast<double>(app::kLeastScale) ||
      *scale > static_cast<double>(app::kMostScale)) {
    refuse("--scale", value, "a number from 0.75 to 3");
  }
  options.scale = static_cast<float>(*scale);
}

void set_file(ViewOptions& options, const std::string& value) {
  if (!options.baseline.empty()) {
    throw UsageError("flags",
                     fmt::format("three files: {}, {}, {}", options.baseline, options.file, value));
  }
  options.baseline = options.file;
  options.file = value;
}

void set_value(ViewOptions& options, const std::string& flag, const std::string& value) {
  if (flag == "--shot") {
    options.shot = value;
  } else if (flag == "--view") {
    options.view = value;
  } else if (flag == "--scenario") {
    set_file(options, value);
  } else if (flag == "--size") {
    set_size(options, value);
  } else if (flag == "--theme") {
    options.theme = ui::parse_theme(value);
    if (!options.theme) {
      refuse(flag, value, "dark, light or contrast");
    }
  } else if (flag == "--lang") {
    options.language = ui::parse_language(value);
    if (!options.language) {
      refuse(flag, value, "en or zh");
    }
  } else if (flag == "--scale") {
    set_scale(options, value);
  } else if (flag == "--frames") {
    const std::optional<double> count = number(value);
    if (!count || *count < 1 || *count > 1e6) {
      refuse(flag, value, "a number from 1 to 1000000");
    }
    options.frames = static_cast<int>(*count);
  } else if (flag == "--cursor") {
    set_cursor(options, value);
  } else if (flag == "--keys") {
    options.keys = value;
  } else {
    throw UsageError("flags",
                     fmt::format("unknown flag {}, nearest is {}; see lockstep-view --help",
                                 printable(flag, 60),
                                 nearest(flag, kFlags)));
  }
}

}  // namespace

ViewOptions parse_view_options(const std::vector<std::string>& arguments) {
  ViewOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string flag = arguments[i];
    if (!flag.starts_with("--")) {
      set_file(options, flag);
      continue;
    }
    if (flag == "--help" || flag == "--version") {
      (flag == "--help" ? options.help : options.version) = true;
      continue;
    }
    std::string value;
    const std::size_t equals = flag.find('=');
    if (equals != std::string::npos) {
      value = flag.substr(equals + 1);
      flag.resize(equals);
    }
    const bool known = std::find(kFlags.begin(), kFlags.end(), flag) != kFlags.end();
    if (equals == std::string::npos && known) {
      if (i + 1 == arguments.size()) {
        throw UsageError("flags", fmt::format("{} needs a value", flag));
      }
      value = arguments[++i];
    }
    set_value(options, flag, value);
  }
  return options;
}

std::string view_help() {
  return "Shows what happens on every rank in one training step.\n\n"
         "  lockstep-view                         start screen\n"
         "  lockstep-view scenario.json           also: config.json, step.lstrace, a run's "
         "folder,\n"
         "                                        a profiler's trace.json.gz or a folder of them\n"
         "  lockstep-view A B                     what is different in B (view compare)\n"
         "  lockstep-view --shot out.png --view timeline --scenario fsdp\n\n"
         "  --scenario FILE    what to open; a file's name alone does the same\n"
         "  --view ID          timeline, budget, buckets, shards, pipeline, memory, steps, "
         "compare\n"
         "  --shot FILE        write a PNG and end; needs no display\n"
         "  --size WxH         of window or picture (1280x800)\n"
         "  --theme NAME       dark, light, contrast\n"
         "  --lang CODE        en, zh\n"
         "  --scale NUMBER     0.75 to 3\n"
         "  --cursor X,Y|TIME  where the mouse is, or the time that is pointed at: 12.5ms\n"
         "  --keys TEXT        type this before the picture is taken: k (critical path), /name\n"
         "  --frames N         close the window after N frames\n"
         "  --version, --help\n\n"
         "Exit codes: 0 ok, 2 usage, 3 bad input file, 7 no display or no OpenGL 3.3.\n";
}

}  // namespace lockstep
