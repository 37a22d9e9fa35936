// Problems: every fault of a scenario, collected instead of thrown one by one.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

/// One fault: where (key path such as "strategy.tensor.degree", or file:line:column) and what.
struct Problem {
  std::string place;
  std::string message;
};

class Problems {
 public:
  /// one_line() prints this many and counts the rest: a broken file may have thousands.
  static constexpr std::size_t kShownOnOneLine = 20;

  void add(std::string place, std::string message) {
    list_.push_back({std::move(place), std::move(message)});
  }
  /// Adds the problem unless `condition` holds.
  void require(bool condition, const char* place, const char* message) {
    if (!condition) {
      add(place, message);
    }
  }
  bool empty() const { return list_.empty(); }
  const std::vector<Problem>& list() const { return list_; }
  /// "place: message; place: message" on one line, ending with "and N more" where there are many.
  std::string one_line() const;

 private:
  std::vector<Problem> list_;
};

}  // namespace lockstep
