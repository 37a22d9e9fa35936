// Prices in whole seconds, so that the times of a simulation can be written down by hand.
#pragma once

#include <functional>

#include "simulator/cost_model.h"

namespace lockstep::test {

/// What is not given costs nothing.
struct WholeCosts : sim::CostModel {
  std::function<double(const sim::PriceKey&)> compute = [](const sim::PriceKey&) { return 0.0; };
  std::function<double(const sim::PriceKey&, const sim::GroupPlacement&)> communication =
      [](const sim::PriceKey&, const sim::GroupPlacement&) { return 0.0; };
  double beside = 1;
  double launch = 0;

  double seconds(const sim::PriceKey& key) const override { return compute(key); }
  double seconds(const sim::PriceKey& key, const sim::GroupPlacement& placement) const override {
    return communication(key, placement);
  }
  double compute_speed_beside(const sim::GroupPlacement&) const override { return beside; }
  double launch_overhead() const override { return launch; }
};

}  // namespace lockstep::test
