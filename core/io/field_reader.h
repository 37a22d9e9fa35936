// The reading visitor over the table of keys (core/fields.h): lays a JSON object over a struct.
// Keys that are absent leave their field as it is, so a file, a preset and `--set` can follow each
// other. Wrong types and unknown keys are collected as Problems with their key path and, for files,
// line and column; ranges are checked later, by validate().
#pragma once

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/cluster_presets.h"
#include "core/fields.h"
#include "core/io/cluster_io.h"
#include "core/io/hf_config.h"
#include "core/io/json_reader.h"
#include "core/model_presets.h"
#include "core/names.h"
#include "core/problems.h"

namespace lockstep {

struct ReadContext {
  std::string source;  ///< file name, or empty for --set: places are then key paths alone
  /// Folder of files that the text names ("config", "file"); none = such keys are refused.
  std::optional<std::string> folder;
  /// --set: the value as typed, which a text field takes even where it looks like a number.
  std::optional<std::string> typed;
  /// For an unknown key: the full path of a key of any section that is nearer than this distance,
  /// or empty. None = only keys of the same section are suggested.
  std::string (*find_misplaced)(std::string_view key, std::size_t better_than) = nullptr;
  Problems problems;

  std::string place(std::int32_t line, std::int32_t column, const std::string& path) const {
    return source.empty() ? path : fmt::format("{}:{}:{}: {}", source, line, column, path);
  }
  void add(const JsonValue& json, const std::string& path, std::string message) {
    problems.add(place(json.line, json.column, path), std::move(message));
  }
  void wrong_type(const JsonValue& json, const std::string& path, const char* wanted) {
    add(json, path, fmt::format("must be {}, found {}", wanted, json.description()));
  }
};

/// Sections that can start from a preset or a file: where those come from.
template <typename Spec>
struct BaseOf {
  static constexpr bool kExists = false;
};
template <>
struct BaseOf<ModelSpec> {
  static constexpr bool kExists = true;
  static constexpr const char* kFileKey = "config";
  static std::optional<ModelSpec> preset(std::string_view name) { return find_model_preset(name); }
  static std::string unknown(std::string_view name) { return unknown_model_message(name); }
  static ModelSpec load(const std::string& path) { return load_hf_config(path).model; }
};
template <>
struct BaseOf<ClusterSpec> {
  static constexpr bool kExists = true;
  static constexpr const char* kFileKey = "file";
  static std::optional<ClusterSpec> preset(std::string_view name) {
    return find_cluster_preset(name);
  }
  static std::string unknown(std::string_view name) { return unknown_cluster_message(name); }
  static ClusterSpec load(const std::string& path) { return load_cluster(path); }
};

class FieldReader {
 public:
  FieldReader(const JsonValue& object, std::string prefix, ReadContext& context)
      : object_(object), prefix_(std::move(prefix)), context_(context) {}

  template <typename T>
  void field(const char* key, T& value, const char* /*help*/) {
    take(key, value);
  }
  template <typename T, typename Range>
  void field(const char* key, T& value, Range /*range*/, const char* /*help*/) {
    take(key, value);
  }
  template <typename Spec>
  void section(const char* key, Spec& spec, const char* /*help*/) {
    take(key, spec);
  }

  /// Marks a key as known that is not a field of the struct.
  void also_known(const char* key) { known_.push_back(key); }

  /// The object of a whole file, which may say the version of its format.
  template <typename Spec>
  static void read_root(const JsonValue& root, int version, ReadContext& context, Spec& spec) {
    if (root.kind != JsonValue::Kind::kObject) {
      context.wrong_type(root, "the file", "an object");
      return;
    }
    FieldReader reader(root, "", context);
    reader.check_version(version);
    if constexpr (BaseOf<Spec>::kExists) {
      reader.read_base(spec);
    }
    visit_fields(reader, spec);
    reader.report_unknown_keys();
  }

  /// After the visit: every key that no field asked for is a problem.
  void report_unknown_keys() {
    for (const JsonKey& key : object_.keys) {
      if (std::find(known_.begin(), known_.end(), key.name) == known_.end()) {
        // Suggestions are for people: a file with so many wrong keys is another kind of file.
        const bool suggest = context_.problems.list().size() < 100;
        context_.problems.add(
            context_.place(key.line, key.column, prefix_ + printable(key.name, 80)),
            suggest ? "unknown key, nearest is " + suggestion(key.name) : "unknown key");
      }
    }
  }

 private:
  /// The nearest key of this section, or a nearer one of another section.
  std::string suggestion(std::string_view key) const {
    const std::string sibling = nearest(key, known_);
    const std::size_t distance = slip_distance(key, sibling);
    std::string misplaced;
    if (context_.find_misplaced != nullptr) {
      misplaced = context_.find_misplaced(key, distance);
    }
    return misplaced.empty() ? prefix_ + sibling : misplaced;
  }

  void check_version(int newest) {
    also_known("schema_version");
    const JsonValue* version = object_.find("schema_version");
    if (version == nullptr) {
      return;
    }
    if (version->kind != JsonValue::Kind::kInteger || version->integer < 1) {
      context_.wrong_type(*version, "schema_version", "a whole number from 1");
    } else if (version->integer > newest) {
      context_.add(*version,
                   "schema_version",
                   fmt::format("is {}, written by a newer Lockstep; this one reads up to {}",
                               version->integer,
                               newest));
    }
  }

  template <typename T>
  void take(const char* key, T& value) {
    known_.push_back(key);
    if (const JsonValue* json = object_.find(key)) {
      read(*json, prefix_ + key, value);
    }
  }

  void read(const JsonValue& json, const std::string& path, bool& value) {
    if (json.kind == JsonValue::Kind::kBool) {
      value = json.boolean;
    } else {
      context_.wrong_type(json, path, "true or false");
    }
  }

  void read(const JsonValue& json, const std::string& path, std::int64_t& value) {
    constexpr double kExact = 9007199254740992.0;  // 2^53: 1e3 is a whole number, 1e300 is not
    const bool whole = json.kind == JsonValue::Kind::kReal && std::fabs(json.real) <= kExact &&
                       std::floor(json.real) == json.real;
    if (json.kind == JsonValue::Kind::kInteger) {
      value = json.integer;
    } else if (whole) {
      value = static_cast<std::int64_t>(json.real);
    } else {
      context_.wrong_type(json, path, "a whole number");
    }
  }

  void read(const JsonValue& json, const std::string& path, double& value) {
    if (json.kind == JsonValue::Kind::kInteger || json.kind == JsonValue::Kind::kReal) {
      value = json.real;
    } else {
      context_.wrong_type(json, path, "a number");
    }
  }

  void read(const JsonValue& json, const std::string& path, std::string& value) {
    if (json.kind == JsonValue::Kind::kString) {
      value = json.string;
    } else if (context_.typed) {
      value = *context_.typed;
    } else {
      context_.wrong_type(json, path, "a string");
    }
  }

  template <typename Enum>
  requires std::is_enum_v<Enum>
  void read(const JsonValue& json, const std::string& path, Enum& value) {
    if (json.kind != JsonValue::Kind::kString) {
      context_.wrong_type(json, path, "one of the names of this setting, a string");
      return;
    }
    if (const std::optional<Enum> found = parse_name<Enum>(json.string)) {
      value = *found;
    } else {
      context_.add(json, path, not_valid_message(json.string, valid_names<Enum>()));
    }
  }

  template <typename T>
  void read(const JsonValue& json, const std::string& path, std::optional<T>& value) {
    if (json.kind == JsonValue::Kind::kNull) {
      value.reset();
      return;
    }
    T inner = value.value_or(T{});
    read(json, path, inner);
    value = inner;
  }

  template <typename T>
  void read(const JsonValue& json, const std::string& path, std::vector<T>& values) {
    if (json.kind != JsonValue::Kind::kArray) {
      context_.wrong_type(json, path, "a list");
      return;
    }
    values.assign(json.items.size(), T{});
    for (std::size_t i = 0; i < values.size(); ++i) {
      read(json.items[i], fmt::format("{}[{}]", path, i), values[i]);
    }
  }

  template <typename Spec>
  requires std::is_class_v<Spec>
  void read(const JsonValue& json, const std::string& path, Spec& spec) {
    if constexpr (BaseOf<Spec>::kExists) {
      if (json.kind == JsonValue::Kind::kString) {
        read_preset(json, path, spec);
        return;
      }
    }
    if (json.kind != JsonValue::Kind::kObject) {
      const bool presets = BaseOf<Spec>::kExists;
      context_.wrong_type(json, path, presets ? "an object or the name of a preset" : "an object");
      return;
    }
    read_object(json, path + ".", spec);
  }

  template <typename Spec>
  void read_object(const JsonValue& json, const std::string& prefix, Spec& spec) {
    FieldReader reader(json, prefix, context_);
    if constexpr (BaseOf<Spec>::kExists) {
      reader.read_base(spec);
    }
    visit_fields(reader, spec);
    reader.report_unknown_keys();
  }

  /// Starts from the preset or the file that the object names, if it names one.
  template <typename Spec>
  void read_base(Spec& spec) {
    constexpr const char* kFileKey = BaseOf<Spec>::kFileKey;
    also_known("preset");
    also_known(kFileKey);
    const JsonValue* preset = object_.find("preset");
    const JsonValue* file = object_.find(kFileKey);
    if (preset != nullptr && file != nullptr) {
      context_.add(*file, prefix_ + kFileKey, "excludes preset: there is one origin");
    } else if (preset != nullptr) {
      read_preset(*preset, prefix_ + "preset", spec);
    } else if (file != nullptr) {
      read_file(*file, prefix_ + kFileKey, spec);
    }
  }

  template <typename Spec>
  void read_preset(const JsonValue& json, const std::string& path, Spec& spec) {
    if (json.kind != JsonValue::Kind::kString) {
      context_.wrong_type(json, path, "the name of a preset");
    } else if (std::optional<Spec> found = BaseOf<Spec>::preset(json.string)) {
      spec = std::move(*found);
    } else {
      context_.add(json, path, BaseOf<Spec>::unknown(json.string));
    }
  }

  /// A file that cannot be read is an error of its own, with its own place.
  template <typename Spec>
  void read_file(const JsonValue& json, const std::string& path, Spec& spec) {
    if (json.kind != JsonValue::Kind::kString) {
      context_.wrong_type(json, path, "a file name");
    } else if (!context_.folder) {
      context_.add(json, path, "names a file, which is not possible here");
    } else {
      spec = BaseOf<Spec>::load((std::filesystem::path(*context_.folder) / json.string).string());
    }
  }

  const JsonValue& object_;
  std::string prefix_;
  ReadContext& context_;
  std::vector<std::string_view> known_;
};

}  // namespace lockstep
