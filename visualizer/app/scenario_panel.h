// ScenarioPanel: the settings on the left. Problems stand under the field that they name; choices
// that would bring a new problem are greyed, with the reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "visualizer/app/choices.h"
#include "visualizer/app/session.h"
#include "visualizer/ui/strings.h"

namespace lockstep::app {

class ScenarioPanel {
 public:
  /// Into the current window.
  void draw(Session& session);
  /// Every field: its tag (the key that problems name) and its title.
  static const std::vector<std::pair<const char*, ui::S>>& fields();

 private:
  struct Neighbours {
    Neighbour less;
    Neighbour more;
  };
  using MakeChoices = std::vector<Choice> (*)(const Scenario&);

  void where_section(Session& session);
  void strategy_section(Session& session);
  void training_section(Session& session);
  void summary(Session& session) const;
  void choice(Session& session, ui::S title, const char* key, MakeChoices make);
  void number(Session& session, ui::S title, const NumberField& field, std::int64_t resolved);
  void number_text(Session& session, const NumberField& field, std::int64_t shown);
  void step_button(Session& session, const NumberField& field, const Neighbour& to, bool more);
  void check(Session& session, ui::S title, const char* key, bool value, const Change& change);
  void problems_of(const Session& session, const char* key);
  /// Those of fields that are not shown.
  void other_problems(const Session& session) const;
  const Neighbours& neighbours(const Session& session, const NumberField& field);

  /// What is typed and not yet confirmed: key and value.
  std::optional<std::pair<std::string, std::int64_t>> typed_;
  std::map<std::string, Neighbours> neighbours_;  ///< by key, of `revision_`
  std::uint64_t revision_ = 0;
  std::set<std::string, std::less<>> shown_keys_;  ///< in this frame
};

}  // namespace lockstep::app
