#include "core/io/scenario_io.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/field_reader.h"
#include "core/io/field_writer.h"

namespace lockstep {
namespace {

constexpr const char* kComponent = "scenario";

/// {"a": {"b": value}} for the key "a.b".
JsonValue nested(std::string_view key, JsonValue value) {
  while (true) {
    const std::size_t dot = key.rfind('.');
    JsonValue object;
    object.kind = JsonValue::Kind::kObject;
    object.keys.push_back({std::string(key.substr(dot == std::string_view::npos ? 0 : dot + 1))});
    object.items.push_back(std::move(value));
    if (dot == std::string_view::npos) {
      return object;
    }
    key = key.substr(0, dot);
    value = std::move(object);
  }
}

/// JSON where the text is JSON, otherwise the text as a string.
JsonValue typed_value(std::string_view text) {
  try {
    return parse_json(text, "value", "set");
  } catch (const BadInputError&) {
    try {
      return parse_json(json_string(text), "value", "set");
    } catch (const BadInputError&) {
      throw UsageError("set", "a value that is not UTF-8 text");
    }
  }
}

/// The listing visitor.
class KeyLister {
 public:
  KeyLister(std::string prefix, std::vector<KeyInfo>& keys)
      : prefix_(std::move(prefix)), keys_(keys) {}

  template <typename T>
  void field(const char* key, const T& value, const char* help) {
    add(key, type_of(value), names_of(value), json_text(value), help);
  }
  template <typename T, typename Range>
  void field(const char* key, const T& value, Range range, const char* help) {
    add(key,
        type_of(value),
        fmt::format("{} to {}", range.low, range.high),
        json_text(value),
        help);
  }
  template <typename Spec>
  void section(const char* key, const Spec& spec, const char* help) {
    if constexpr (BaseOf<Spec>::kExists) {
      add(key, "name of a preset", "", json_text(spec.name), help);
      const std::string file_key = std::string(key) + "." + BaseOf<Spec>::kFileKey;
      add(file_key.c_str(), "file name", "", "null", "start from this file");
    }
    KeyLister inner(prefix_ + key + ".", keys_);
    visit_fields(inner, spec);
  }
  template <typename Spec>
  void section(const char* key, const std::vector<Spec>& /*specs*/, const char* help) {
    std::vector<KeyInfo> of_entry;
    KeyLister inner("", of_entry);
    const Spec entry;
    visit_fields(inner, entry);
    std::string members;
    for (const KeyInfo& info : of_entry) {
      members += (members.empty() ? "" : ", ") + info.key;
    }
    add(key, "list of objects", "keys " + members, "[]", help);
  }

 private:
  static std::string type_of(bool /*value*/) { return "true or false"; }
  static std::string type_of(std::int64_t /*value*/) { return "whole number"; }
  static std::string type_of(double /*value*/) { return "number"; }
  static std::string type_of(const std::string& /*value*/) { return "text"; }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  static std::string type_of(Enum /*value*/) { return "name"; }
  template <typename T>
  static std::string type_of(const std::optional<T>& /*value*/) {
    return type_of(T{}) + " or null";
  }
  template <typename T>
  static std::string type_of(const std::vector<T>& /*value*/) {
    return "list of " + type_of(T{}) + "s";
  }

  template <typename T>
  static std::string names_of(const T& /*value*/) {
    if constexpr (std::is_enum_v<T>) {
      return fmt::format("{}", fmt::join(valid_names<T>(), ", "));
    } else {
      return "";
    }
  }
  template <typename T>
  static std::string names_of(const std::optional<T>& /*value*/) {
    return names_of(T{});
  }

  void add(const char* key,
           std::string type,
           std::string legal,
           std::string default_value,
           const char* help) {
    keys_.push_back(
        {prefix_ + key, std::move(type), std::move(legal), std::move(default_value), help});
  }

  std::string prefix_;
  std::vector<KeyInfo>& keys_;
};

/// The full path of the key, of any section, that is nearer than `better_than`; or empty.
std::string misplaced_key(std::string_view key, std::size_t better_than) {
  static const std::vector<KeyInfo> keys = scenario_keys();
  std::string best;
  std::size_t best_distance = std::min(better_than, key.size() / 3 + 1);
  for (const KeyInfo& info : keys) {
    const std::string_view word = std::string_view(info.key).substr(info.key.rfind('.') + 1);
    const std::size_t distance = slip_distance(key, word);
    if (distance < best_distance) {
      best = info.key;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace

Scenario parse_scenario(std::string_view text,
                        std::string_view source,
                        const std::optional<std::string>& folder) {
  ReadContext context;
  context.source = printable(source, 200);
  context.folder = folder;
  context.find_misplaced = misplaced_key;
  Scenario scenario;
  FieldReader::read_root(parse_json(text, source, kComponent), kScenarioVersion, context, scenario);
  if (!context.problems.empty()) {
    throw BadInputError(kComponent, context.problems.one_line());
  }
  return scenario;
}

Scenario load_scenario(const std::string& path) {
  return parse_scenario(
      read_text_file(path, kComponent), path, std::filesystem::path(path).parent_path().string());
}

std::string scenario_text(const Scenario& scenario) {
  FieldWriter writer;
  writer.line("schema_version", std::to_string(kScenarioVersion));
  visit_fields(writer, scenario);
  return writer.text() + "\n";
}

void set_key(Scenario& scenario,
             std::string_view key,
             std::string_view value,
             const std::optional<std::string>& folder) {
  ReadContext context;
  context.folder = folder;
  context.find_misplaced = misplaced_key;
  JsonValue json = typed_value(value);
  if (json.kind != JsonValue::Kind::kArray && json.kind != JsonValue::Kind::kObject) {
    context.typed = std::string(value);
  }
  Scenario changed = scenario;
  FieldReader::read_root(nested(key, std::move(json)), kScenarioVersion, context, changed);
  if (!context.problems.empty()) {
    throw UsageError("set", context.problems.one_line());
  }
  scenario = std::move(changed);
}

std::vector<KeyInfo> scenario_keys() {
  std::vector<KeyInfo> keys;
  KeyLister lister("", keys);
  const Scenario defaults;
  visit_fields(lister, defaults);
  return keys;
}

}  // namespace lockstep
