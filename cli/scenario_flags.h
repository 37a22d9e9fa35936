// ScenarioFlags: the flags from which a command puts its scenario together.
//
// Every flag is a short name for a key of the scenario and goes through set_key(), as `--set` does,
// so a flag cannot accept what a file may not say. Later wins: file, flags, `--set`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/scenario.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

/// Tokens per sample when neither a file nor a flag says: models allow up to 131,072, which hardly
/// anybody trains with.
inline constexpr std::int64_t kDefaultSequence = 8192;
inline constexpr const char* kDefaultCluster = "dgx-h100";

class ScenarioFlags {
 public:
  void add_to(CLI::App& command);

  /// Files, flags and `--set` put together, validated and resolved. UsageError where flags alone
  /// are wrong, BadInputError where a file takes part. `base`: what holds where nothing is said,
  /// for commands that need no model; else a model is asked for.
  Scenario scenario(const Scenario* base = nullptr) const;

  /// True when a flag or `--set` gives this key a value.
  bool sets(const char* key) const;

  /// True when a file, a flag or `--set` says how the work is split over ranks.
  bool names_strategy() const;
  /// Whether any flag of a scenario was given.
  bool names_anything() const;

  /// True when `--list-keys` asks for the keys instead of an answer.
  bool lists_keys() const { return list_keys_; }
  /// Every key that `--set` reaches, with type, legal values and default.
  static std::string keys_text();

 private:
  struct Given {
    const char* flag = "";
    const char* key = "";
    std::optional<std::string> value;
  };
  const Given* given(const char* key) const;
  void apply_model(Scenario& scenario) const;
  void apply_cluster(Scenario& scenario, bool has_base) const;
  void apply_values(Scenario& scenario, std::int64_t default_sequence) const;
  void apply_actions(Scenario& scenario) const;

  std::string file_;
  std::string model_;
  std::string config_;
  std::string cluster_;
  std::string actions_file_;
  bool sequence_parallel_ = false;
  bool list_keys_ = false;
  std::vector<std::string> set_;
  std::vector<Given> given_;
};

}  // namespace lockstep::cli
