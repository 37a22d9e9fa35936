#include "core/validate_fields.h"

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "core/fields.h"

namespace lockstep {
namespace {

/// Longest list of a scenario; the longest sensible one is layers_per_stage.
constexpr std::size_t kMaxListEntries = kMaxStages;
/// Longest name or source; a pipeline's CSV text is a file and may be longer.
constexpr std::size_t kMaxText = std::size_t{8} << 20;

class RangeChecker {
 public:
  RangeChecker(std::string path, Problems& problems)
      : path_(std::move(path)), problems_(problems) {}

  void field(const char* key, std::int64_t value, IntRange range, const char* /*help*/) {
    if (value < range.low || value > range.high) {
      add(key, fmt::format("must be from {} to {}, found {}", range.low, range.high, value));
    }
  }
  void field(const char* key, double value, RealRange range, const char* /*help*/) {
    if (!(value >= range.low && value <= range.high)) {  // NaN fails both
      add(key, fmt::format("must be from {} to {}, found {}", range.low, range.high, value));
    }
  }
  void field(const char* key,
             const std::optional<double>& value,
             RealRange range,
             const char* help) {
    if (value) {
      field(key, *value, range, help);
    }
  }
  void field(const char* key,
             const std::vector<std::int64_t>& values,
             IntRange range,
             const char* help) {
    check_length(key, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < range.low || values[i] > range.high) {
        field(fmt::format("{}[{}]", key, i).c_str(), values[i], range, help);
      }
    }
  }
  void field(const char* key, const std::vector<std::string>& values, const char* /*help*/) {
    check_length(key, values.size());
  }
  void field(const char* key, const std::string& value, const char* /*help*/) {
    if (value.size() > kMaxText) {
      add(key, fmt::format("has {} bytes, more than {}", value.size(), kMaxText));
    }
  }
  template <typename T>
  void field(const char* /*key*/, const T& /*value*/, const char* /*help*/) {}  // all values legal

  template <typename T>
  void section(const char* key, const T& value, const char* /*help*/) {
    RangeChecker checker(path_ + "." + key, problems_);
    visit_fields(checker, value);
  }
  template <typename T>
  void section(const char* key, const std::vector<T>& values, const char* help) {
    check_length(key, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      section(fmt::format("{}[{}]", key, i).c_str(), values[i], help);
    }
  }

 private:
  void check_length(const char* key, std::size_t length) {
    if (length > kMaxListEntries) {
      add(key, fmt::format("has {} entries, more than {}", length, kMaxListEntries));
    }
  }
  void add(const char* key, std::string message) {
    problems_.add(path_ + "." + key, std::move(message));
  }

  std::string path_;
  Problems& problems_;
};

template <typename Section>
void check(const char* path, const Section& section, Problems& problems) {
  RangeChecker checker(path, problems);
  visit_fields(checker, section);
}

}  // namespace

void validate_fields(const char* path, const ModelSpec& model, Problems& problems) {
  check(path, model, problems);
}
void validate_fields(const char* path, const ClusterSpec& cluster, Problems& problems) {
  check(path, cluster, problems);
}
void validate_fields(const char* path, const TrainingSpec& training, Problems& problems) {
  check(path, training, problems);
}
void validate_fields(const char* path, const StrategySpec& strategy, Problems& problems) {
  check(path, strategy, problems);
}

}  // namespace lockstep
