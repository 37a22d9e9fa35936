// CompareErrand: two documents held against each other on the worker. What a measured run is
// compared with, when nobody says, is simulated first.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "visualizer/app/worker.h"
#include "visualizer/models/comparison.h"

namespace lockstep::app {

struct Compared {
  DocumentPtr a;
  DocumentPtr b;
  std::unique_ptr<view::Comparison> comparison;  ///< of their shown steps; null after an error
  std::string error;

  /// The difference that has this operation of a rank; nothing when it has no partner.
  std::optional<std::size_t> with_a(std::int32_t rank, std::uint32_t operation) const;
  std::optional<std::size_t> with_b(std::int32_t rank, std::uint32_t operation) const;

  struct Place {
    std::int32_t rank = 0;
    std::uint32_t operation = 0;
    std::size_t difference = 0;
  };
  std::vector<Place> by_a;  ///< by rank and operation
  std::vector<Place> by_b;
};

class CompareErrand : public Errand {
 public:
  /// `a` null: `b`'s scenario, simulated.
  CompareErrand(DocumentPtr a, DocumentPtr b) : a_(std::move(a)), b_(std::move(b)) {}

  const DocumentPtr& asked_a() const { return a_; }
  const DocumentPtr& asked_b() const { return b_; }
  /// Null until it is done.
  std::shared_ptr<const Compared> result() const;

  bool step(const StopCheck& stop_check) override;

 private:
  DocumentPtr a_;
  DocumentPtr b_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Compared> result_;
};

}  // namespace lockstep::app
