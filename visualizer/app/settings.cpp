#include "visualizer/app/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/files.h"

namespace lockstep::app {
namespace {

constexpr std::size_t kMostRecent = 10;
constexpr std::size_t kMostBytes = std::size_t{64} << 10;

void read_number(const std::string& text, float low, float high, float& value) {
  float number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= low && number <= high) {
    value = number;
  }
}

void read_line(const std::string& key, const std::string& value, Settings& settings) {
  if (key == "language") {
    settings.language = ui::parse_language(value).value_or(settings.language);
  } else if (key == "theme") {
    settings.theme = ui::parse_theme(value).value_or(settings.theme);
  } else if (key == "scale") {
    read_number(value, kLeastScale, kMostScale, settings.scale);
  } else if (key == "left") {
    read_number(value, 0.05F, 0.6F, settings.left);
  } else if (key == "right") {
    read_number(value, 0.05F, 0.5F, settings.right);
  } else if (key == "bottom") {
    read_number(value, 0.05F, 0.7F, settings.bottom);
  } else if (key == "recent" && settings.recent.size() < kMostRecent && !value.empty()) {
    settings.recent.push_back(value);
  }
}

}  // namespace

void Settings::add_recent(const std::string& path) {
  recent.erase(std::remove(recent.begin(), recent.end(), path), recent.end());
  recent.insert(recent.begin(), path);
  recent.resize(std::min(recent.size(), kMostRecent));
}

Settings parse_settings(const std::string& text) {
  Settings settings;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    const std::size_t equals = line.find(" = ");
    if (equals != std::string::npos) {
      read_line(line.substr(0, equals), line.substr(equals + 3), settings);
    }
  }
  return settings;
}

std::string settings_text(const Settings& settings) {
  std::string text = fmt::format(
      "language = {}\ntheme = {}\nscale = {:g}\nleft = {:.4f}\nright = {:.4f}\nbottom = {:.4f}\n",
      name_of(settings.language),
      name_of(settings.theme),
      settings.scale,
      settings.left,
      settings.right,
      settings.bottom);
  for (const std::string& path : settings.recent) {
    text += fmt::format("recent = {}\n", path);
  }
  return text;
}

std::string settings_path() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  if (config != nullptr && *config == '/') {
    return std::string(config) + "/lockstep/view.conf";
  }
  return home != nullptr && *home == '/' ? std::string(home) + "/.config/lockstep/view.conf" : "";
}

Settings load_settings(const std::string& path) {
  std::error_code error;
  if (path.empty() || !std::filesystem::is_regular_file(path, error)) {
    return {};
  }
  try {
    return parse_settings(read_whole(path, "settings", kMostBytes));
  } catch (const Error&) {  // unreadable or absurd: the program works without
    return {};
  }
}

bool save_settings(const std::string& path, const Settings& settings) {
  if (path.empty()) {
    return false;
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  try {
    write_whole(path, {settings_text(settings)}, "settings");
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace lockstep::app
