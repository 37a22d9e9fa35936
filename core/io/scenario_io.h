// scenario.json: reading, writing, and the keys one by one for `--set`. The file mirrors the
// structs of core/scenario.h:
//
//     {"schema_version": 1, "name": "8B on one node",
//      "model": "llama-3.1-8b",                                  or {"preset": ..., overrides}
//      "cluster": {"preset": "dgx-h100", "nodes": 2},            or {"file": "my_cluster.json"}
//      "training": {"seq_len": 8192, "global_batch": 64},        or "config": "config.json" in
//      model "strategy": {"data": {"kind": "fsdp", "degree": 16}}}
//
// Every key may be absent. Reading checks types and names; ranges and combinations are checked by
// validate(), after flags have had their say.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario.h"

namespace lockstep {

/// Reads a file; files that it names are relative to its folder. BadInputError with all problems.
Scenario load_scenario(const std::string& path);

/// Reads text. `source` is for messages. Without `folder`, keys that name files are refused.
Scenario parse_scenario(std::string_view text,
                        std::string_view source,
                        const std::optional<std::string>& folder = std::nullopt);

/// All fields in a fixed order, ending with a newline; parse_scenario gives the same scenario back.
std::string scenario_text(const Scenario& scenario);

/// `--set KEY=VALUE`: key path with dots, value as in the file; quotes around words may be left
/// out. UsageError for an unknown key or a value of the wrong type, and then nothing has changed.
/// Files that the value names are relative to `folder`; without one they are refused.
void set_key(Scenario& scenario,
             std::string_view key,
             std::string_view value,
             const std::optional<std::string>& folder = "");

/// What `--set` reaches.
struct KeyInfo {
  std::string key;            ///< "strategy.data.kind"
  std::string type;           ///< "number", "whole number", "name", "list of whole numbers", ...
  std::string legal;          ///< "1 to 10000", "dp, ddp, zero1, ..."; empty where anything goes
  std::string default_value;  ///< as JSON text
  std::string help;
};

/// Every key of a scenario, in file order.
std::vector<KeyInfo> scenario_keys();

}  // namespace lockstep
