#include "core/io/scenario_io.h"

#include <filesystem>
#include <set>

#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/model_presets.h"
#include "core/names.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace lockstep;

namespace {

std::string error_of(std::string_view text) {
  try {
    parse_scenario(text, "s.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return error.what();
  }
  return "no error";
}

std::string set_error(std::string_view key, std::string_view value) {
  Scenario s;
  const std::string before = scenario_text(s);
  try {
    set_key(s, key, value);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK(scenario_text(s) == before);
    return error.what();
  }
  return "no error";
}

/// A value other than the default for a key of this kind, as typed on a command line.
std::string other_value(const KeyInfo& info) {
  if (info.type.find("whole number") == 0) {
    return info.default_value == "7" ? "5" : "7";
  }
  if (info.type.find("number") == 0) {
    return "0.3141592653589793";
  }
  if (info.type.find("true or false") == 0) {
    return info.default_value == "true" ? "false" : "true";
  }
  if (info.type.find("name") == 0) {
    const std::string first = info.legal.substr(0, info.legal.find(','));
    const std::string last = info.legal.substr(info.legal.rfind(' ') + 1);
    return info.default_value == '"' + last + '"' ? first : last;
  }
  if (info.type == "list of whole numbers") {
    return "[3, 2, 1]";
  }
  if (info.type == "list of texts") {
    return "[\"a\", \"b\"]";
  }
  if (info.type == "list of objects") {
    return "[{\"layer\": 1, \"ranks\": [0, 2]}, {\"iterations\": [4]}]";
  }
  return "some \"text\" with\nan \\ and \xC3\xA9";
}

/// Keys that stand for a whole preset or file, not for a field.
bool names_a_base(const KeyInfo& info) {
  return info.type == "name of a preset" || info.type == "file name";
}

}  // namespace

TEST_CASE("A written scenario reads back as itself, to the byte") {
  const std::string defaults = scenario_text(Scenario{});
  CHECK(scenario_text(parse_scenario(defaults, "s.json")) == defaults);
  for (const ModelPreset& model : model_presets()) {
    for (const ClusterPreset& cluster : cluster_presets()) {
      Scenario s;
      s.model = model.model;
      s.cluster = cluster.cluster;
      const std::string text = scenario_text(s);
      CHECK(scenario_text(parse_scenario(text, "s.json")) == text);
    }
  }
}

TEST_CASE("Every key can be set, is written, and reads back") {
  Scenario s;
  for (const KeyInfo& info : scenario_keys()) {
    if (names_a_base(info)) {
      continue;
    }
    INFO(info.key << " = " << other_value(info));
    const std::string before = scenario_text(s);
    set_key(s, info.key, other_value(info));
    const std::string after = scenario_text(s);
    CHECK(after != before);
    CHECK(scenario_text(parse_scenario(after, "s.json")) == after);
  }
}

TEST_CASE("Every listed key has help and what is legal, and none is listed twice") {
  std::set<std::string> keys;
  for (const KeyInfo& info : scenario_keys()) {
    INFO(info.key);
    CHECK(keys.insert(info.key).second);
    CHECK_FALSE(info.help.empty());
    CHECK_FALSE(info.default_value.empty());
    if (info.type.find("name") != 0 && info.type.find("number") != std::string::npos) {
      CHECK_FALSE(info.legal.empty());
    }
  }
  CHECK(keys.count("strategy.data.kind") == 1);
  CHECK(keys.count("cluster.device.memory_bytes") == 1);
  CHECK(keys.count("model.config") == 1);
  CHECK(keys.count("cluster.file") == 1);
}

TEST_CASE("Absent keys keep their defaults, presets come before what is said beside them") {
  const Scenario s = parse_scenario(R"({
      "schema_version": 1,
      "model": {"layers": 2, "preset": "llama-3.1-8b"},
      "cluster": "dgx-h100",
      "training": {"precision": "fp16", "reduce_dtype": "fp32", "loss_scaling": null},
      "strategy": {"data": {"kind": "fsdp", "degree": 8}, "pipeline": {"schedule": "zbv"}}})",
                                    "s.json");
  CHECK(s.model.layers == 2);
  CHECK(s.model.hidden == 4096);
  CHECK(s.cluster.device.name == "H100-SXM5-80GB");
  CHECK(s.training.precision == Precision::kFp16);
  CHECK(s.training.reduce_dtype == DType::kFp32);
  CHECK_FALSE(s.training.gradient_dtype.has_value());
  CHECK(s.training.micro_batch == 1);
  CHECK(s.strategy.data.kind == DataKind::kFsdp);
  CHECK(s.strategy.pipeline.schedule == ScheduleKind::kZbV);
}

TEST_CASE("An unknown key names the nearest valid one with its path") {
  CHECK(error_of("{\"training\": {\n  \"seq_lenght\": 8}}") ==
        "[scenario] s.json:2:3: training.seq_lenght: unknown key, nearest is training.seq_len");
  CHECK(
      error_of("{\"modle\": \"gpt2\"}").find("s.json:1:2: modle: unknown key, nearest is model") !=
      std::string::npos);
  // A key of another section is found there.
  CHECK(error_of("{\"micro_batch\": 2}").find("nearest is training.micro_batch") !=
        std::string::npos);
  CHECK(error_of("{\"strategy\": {\"sequence_parallel\": true}}")
            .find("nearest is strategy.tensor.sequence_parallel") != std::string::npos);
}

TEST_CASE("Wrong names are answered with the nearest, wrong types with what was found") {
  CHECK(
      error_of(R"({"strategy": {"data": {"kind": "zero4"}}})")
          .find("s.json:1:32: strategy.data.kind: \"zero4\" is not valid, nearest is \"zero1\"") !=
      std::string::npos);
  CHECK(error_of(R"({"model": "lama-3.1-8b"})").find("nearest is \"llama-3.1-8b\"") !=
        std::string::npos);
  CHECK(error_of(R"({"cluster": {"preset": 3}})")
            .find("must be the name of a preset, found the "
                  "number 3") != std::string::npos);
  CHECK(error_of(R"({"training": [1]})").find("training: must be an object, found a list") !=
        std::string::npos);
  CHECK(error_of(R"({"training": {"seq_len": 1e300}})")
            .find("training.seq_len: must be a whole number, found the number 1e+300") !=
        std::string::npos);
  CHECK(error_of(R"({"training": {"unused": [{"layer": 1}, {"layer": "x"}]}})")
            .find("training.unused[1].layer: must be a whole number") != std::string::npos);
  CHECK(error_of("[]").find("the file: must be an object, found a list") != std::string::npos);
}

TEST_CASE("All problems of a file are reported at once") {
  const std::string error = error_of(R"({"a": 1, "model": {"layers": "x", "b": 2},
                                         "training": {"precision": 16}})");
  CHECK(error.find("model.layers") != std::string::npos);
  CHECK(error.find("model.b") != std::string::npos);
  CHECK(error.find("training.precision") != std::string::npos);
  CHECK(error.find(" a: unknown key") != std::string::npos);
  CHECK(error.find('\n') == std::string::npos);
}

TEST_CASE("Versions: absent and 1 are read, newer and foreign ones are told apart") {
  CHECK(parse_scenario("{}", "s.json").name.empty());
  CHECK(error_of(R"({"schema_version": 2})").find("written by a newer Lockstep") !=
        std::string::npos);
  CHECK(error_of(R"({"schema_version": "1"})").find("must be a whole number from 1") !=
        std::string::npos);
  CHECK(error_of(R"({"schema_version": 0})").find("must be a whole number from 1") !=
        std::string::npos);
}

TEST_CASE("the flag --set takes words without quotes, numbers, lists and null") {
  Scenario s;
  set_key(s, "strategy.data.kind", "fsdp");
  CHECK(s.strategy.data.kind == DataKind::kFsdp);
  set_key(s, "strategy.pipeline.schedule", "1f1b");
  CHECK(s.strategy.pipeline.schedule == ScheduleKind::k1F1B);
  set_key(s, "strategy.pipeline.layers_per_stage", "[1, 1]");
  CHECK(s.strategy.pipeline.layers_per_stage == std::vector<std::int64_t>{1, 1});
  set_key(s, "training.gradient_dtype", "fp32");
  CHECK(s.training.gradient_dtype == DType::kFp32);
  set_key(s, "training.gradient_dtype", "null");
  CHECK_FALSE(s.training.gradient_dtype.has_value());
  set_key(s, "name", "123");
  CHECK(s.name == "123");
  set_key(s, "name", "\"quoted\"");
  CHECK(s.name == "quoted");
  set_key(s, "model", "gpt2");
  CHECK(s.model.hidden == 768);
  set_key(s, "cluster", R"({"preset": "h100", "nodes": 4})");
  CHECK(s.cluster.nodes == 4);
  set_key(s, "training.seq_len", "1e3");
  CHECK(s.training.seq_len == 1000);
}

TEST_CASE(
    "the flag --set refuses what a file would refuse, as a usage error, and changes nothing") {
  CHECK(set_error("training.seq_lenght", "5") ==
        "[set] training.seq_lenght: unknown key, nearest is training.seq_len");
  CHECK(set_error("training.seq_len", "many").find("must be a whole number, found the string") !=
        std::string::npos);
  CHECK(set_error("training.seq_len.x", "1").find("must be a whole number, found an object") !=
        std::string::npos);
  CHECK(set_error("", "1").find("unknown key") != std::string::npos);
  CHECK(set_error("..", "1").find("unknown key") != std::string::npos);
  CHECK(set_error("training", "1").find("must be an object") != std::string::npos);
  CHECK(set_error("model", "gpt9").find("nearest is") != std::string::npos);
}

TEST_CASE("Files that a scenario names are found beside it, and nowhere without a folder") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "sub");
  folder.write("sub/config.json", R"({"model_type": "gpt2", "n_layer": 3})");
  folder.write("machine.json", R"({"preset": "dgx-h100", "nodes": 3})");
  const Scenario s = load_scenario(folder.write("s.json", R"({
      "model": {"config": "sub/config.json", "vocab": 300}, "cluster": {"file": "machine.json"}})"));
  CHECK(s.model.layers == 3);
  CHECK(s.model.vocab == 300);
  CHECK(s.model.name == "sub");
  CHECK_FALSE(s.model.assumptions.empty());
  CHECK(s.cluster.nodes == 3);

  CHECK(error_of(R"({"model": {"config": "x.json"}})").find("not possible here") !=
        std::string::npos);
  CHECK(error_of(R"({"model": {"config": "x.json", "preset": "gpt2"}})").find("excludes preset") !=
        std::string::npos);
}
