// Runs every file of tests/corpus through its loader and the checks that follow it. Each must end
// in one line that has the place and the cause, as bad input, in less than a second.
#include <ctime>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/error.h"
#include "core/io/cluster_io.h"
#include "core/io/hf_config.h"
#include "core/io/scenario_io.h"
#include "core/problems.h"
#include "core/scenario.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

/// File name -> what its message must contain: the place, then the cause.
using Expected = std::map<std::string, std::pair<const char*, const char*>>;

const Expected& scenario_files() {
  static const Expected files = {
      {"truncated.json", {"truncated.json:2:28: ", "unexpected end of input"}},
      {"deep.json", {"deep.json:1:577: ", "nested deeper than 64 levels"}},
      {"nan.json", {"nan.json:1:32: ", "invalid literal"}},
      {"infinity.json", {"infinity.json:1:33: ", "invalid number"}},
      {"huge_real.json", {"training.learning_rate: ", "found 1e+300"}},
      {"huge_whole.json", {"huge_whole.json:1:30: training.micro_batch: ", "whole number"}},
      {"overflow.json", {"overflow.json:1:3", "number overflow"}},
      {"negative.json", {"model.layers: ", "found -12"}},
      {"zero_heads.json", {"model.heads: ", "must be from 1"}},
      {"indivisible_tp.json", {"strategy.tensor.degree: ", "(tp 5, heads 12)"}},
      {"many_layers.json", {"model.layers: ", "found 1000000000"}},
      {"beyond_64_bits.json", {"beyond_64_bits.json:1:22: model.layers: ", "whole number"}},
      {"largest_numbers.json", {"model.layers: ", "found 9223372036854775807"}},
      {"wrong_types.json", {"wrong_types.json:1:33: model.layers: ", "the string \"twelve\""}},
      {"duplicate_keys.json", {"duplicate_keys.json:2:3: ", "duplicate key seq_len"}},
      {"empty.json", {"empty.json:1:1: ", "empty"}},
      {"blank.json", {"blank.json:1:1: ", "empty"}},
      {"invalid_utf8.json", {"invalid_utf8.json:1:15: ", "UTF-8"}},
      {"overlong_utf8.json", {"overlong_utf8.json:1:11: ", "UTF-8"}},
      {"trailing_garbage.json", {"trailing_garbage.json:2:1: ", "unexpected '}'"}},
      {"two_objects.json", {"two_objects.json:1:4: ", "unexpected '{'"}},
      {"trailing_comma.json", {"trailing_comma.json:1:18: ", "unexpected '}'"}},
      {"comment.json", {"comment.json:1:18: ", "invalid literal"}},
      {"single_quotes.json", {"single_quotes.json:1:2: ", "invalid literal"}},
      {"zero_byte.json", {"zero_byte.json:1:18: ", "zero byte"}},
      {"control_character.json", {"control_character.json:", "control character"}},
      {"lone_surrogate.json", {"lone_surrogate.json:1:17: ", "surrogate"}},
      {"binary.json", {"binary.json:1:1: ", "zero byte"}},
      {"utf16.json", {"utf16.json:1:", "not valid JSON"}},
      {"array_root.json", {"array_root.json:1:1: the file: ", "found a list"}},
      {"string_root.json", {"string_root.json:1:1: the file: ", "the string \"gpt2\""}},
      {"unknown_key.json", {"unknown_key.json:1:15: ", "nearest is training.seq_len"}},
      {"unknown_preset.json", {"unknown_preset.json:1:11: model: ", "nearest is \"gpt2\""}},
      {"unknown_name.json", {"unknown_name.json:1:32: ", "nearest is \"ddp\""}},
      {"missing_config.json", {"tests/corpus/scenario/no_such_config.json: ", "No such file"}},
      {"config_is_directory.json", {"tests/corpus/scenario/.: ", "is a directory"}},
      {"newer_version.json", {"newer_version.json:1:20: schema_version: ", "newer Lockstep"}},
      {"long_list.json", {"strategy.pipeline.layers_per_stage: ", "20000 entries"}},
      {"many_unknown_keys.json", {"many_unknown_keys.json:1:2: k0: ", "and 2980 more"}},
      {"html.json", {"html.json:1:1: ", "invalid literal"}},
  };
  return files;
}

const Expected& hf_config_files() {
  static const Expected files = {
      {"empty_object.json", {"empty_object.json: hidden_size: ", "is missing"}},
      {"truncated.json", {"truncated.json:1:35: ", "missing closing quote"}},
      {"zero_heads.json", {"zero_heads.json: model.heads: ", "found 0"}},
      {"many_layers.json", {"many_layers.json: model.layers: ", "found 1000000000"}},
      {"negative_vocab.json", {"negative_vocab.json: model.vocab: ", "found -50257"}},
      {"huge_hidden.json", {"huge_hidden.json:1:40: hidden_size: ", "1e+300"}},
      {"largest_hidden.json", {"largest_hidden.json: ", "9223372036854775807"}},
      {"nan_epsilon.json", {"nan_epsilon.json:1:41: ", "invalid literal"}},
      {"epsilon_out_of_range.json", {"model.norm_epsilon: ", "found 1e+300"}},
      {"wrong_types.json", {"wrong_types.json:1:40: hidden_size: ", "found a list"}},
      {"model_type_is_number.json", {"model_type_is_number.json:1:16: model_type: ", "a string"}},
      {"indivisible_heads.json", {"num_attention_heads: ", "30 does not divide hidden_size 4096"}},
      {"indivisible_kv_heads.json", {"model.kv_heads: ", "must divide model.heads"}},
      {"more_experts_per_token.json", {"model.experts_per_token: ", "must not exceed"}},
      {"duplicate_keys.json", {"duplicate_keys.json:3:2: ", "duplicate key hidden_size"}},
      {"several_modalities.json", {"several_modalities.json:1:40: text_config: ", "modalities"}},
      {"list_root.json", {"list_root.json:1:1: config: ", "found a list"}},
      {"safetensors.json", {"safetensors.json:1:", "not valid JSON"}},
  };
  return files;
}

const Expected& cluster_files() {
  static const Expected files = {
      {"zero_devices.json", {"cluster.devices_per_node: ", "found 0"}},
      {"negative_bandwidth.json", {"cluster.intra_node.bandwidth: ", "found -1000000000"}},
      {"huge_rate.json", {"cluster.device.bf16_flops: ", "found 1e+300"}},
      {"negative_memory.json", {"cluster.device.memory_bytes: ", "found -1"}},
      {"half_a_byte.json", {"half_a_byte.json:1:29: device.memory_bytes: ", "number 0.5"}},
      {"unknown_key.json", {"unknown_key.json:1:13: ", "nearest is device.memory_bytes"}},
      {"unknown_link.json", {"unknown_link.json:1:25: ", "nearest is \"nvlink\""}},
      {"network_inside.json", {"cluster.intra_node.kind: ", "connects devices of one node"}},
      {"file_in_file.json", {"file_in_file.json:1:10: file: ", "not possible here"}},
      {"truncated.json", {"truncated.json:1:24: ", "missing closing quote"}},
      {"many_devices.json", {"cluster.nodes: ", "more than 1048576 devices"}},
      {"null_root.json", {"null_root.json:1:1: the file: ", "found null"}},
  };
  return files;
}

void run_scenario(const std::string& path) {
  require_valid(resolved(load_scenario(path)));
}

void run_hf_config(const std::string& path) {
  load_hf_config(path);
}

void run_cluster(const std::string& path) {
  const ClusterSpec cluster = load_cluster(path);
  Problems problems;
  validate(cluster, problems);
  if (!problems.empty()) {
    throw BadInputError("cluster", problems.one_line());
  }
}

void check_refused(const std::string& path,
                   const std::pair<const char*, const char*>& expected,
                   const std::function<void(const std::string&)>& run) {
  INFO(path);
  std::string text = "no error";
  const std::clock_t begin = std::clock();
  try {
    run(path);
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    text = error.what();
  }
  INFO(text);
  CHECK(std::clock() - begin < 10 * CLOCKS_PER_SEC);  // it takes milliseconds
  CHECK(text.find(expected.first) != std::string::npos);
  CHECK(text.find(expected.second) != std::string::npos);
  CHECK(text.size() < 8000);
  for (const char c : text) {
    REQUIRE((c >= ' ' && c <= '~'));
  }
}

void check_folder(const std::string& folder,
                  const Expected& expected,
                  const std::function<void(const std::string&)>& run) {
  std::set<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    found.insert(name);
    REQUIRE(expected.count(name) == 1);
    check_refused(entry.path().string(), expected.at(name), run);
  }
  CHECK(found.size() == expected.size());
}

}  // namespace

TEST_CASE("Every bad scenario file is one line of bad input with the place") {
  check_folder("tests/corpus/scenario", scenario_files(), run_scenario);
}

TEST_CASE("Every bad Hugging Face config is one line of bad input with the place") {
  check_folder("tests/corpus/hf_config", hf_config_files(), run_hf_config);
}

TEST_CASE("Every bad cluster file is one line of bad input with the place") {
  check_folder("tests/corpus/cluster", cluster_files(), run_cluster);
}

TEST_CASE("A directory and a missing file are bad input for every loader") {
  const std::pair<const char*, const char*> directory = {"tests/corpus: ", "is a directory"};
  const std::pair<const char*, const char*> missing = {"tests/none.json: ", "No such file"};
  for (const auto run : {run_scenario, run_hf_config, run_cluster}) {
    check_refused("tests/corpus", directory, run);
    check_refused("tests/none.json", missing, run);
  }
}
