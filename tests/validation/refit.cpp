// Refit: what the constants of simulator/efficiency.h are worth on rows they were not chosen by.
//
//   build/release/bin/lockstep_refit [data/validation]
//
// For every source in turn all its step times and collectives are put aside, the constants are
// chosen anew by the others, and the rows that were put aside are predicted with these. Starting
// point of every fit are not the defaults but the middle of each constant's range, so that nothing
// is kept of a choice that had the source in view. Takes minutes.
//
// A fit goes down one constant after the other on the mean of a bounded |log(predicted /
// measured)|. It prices by the closed form, which is fast; all figures that are printed come from
// event simulations.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/csv_reader.h"
#include "core/io/validation_io.h"
#include "core/planner/planner.h"
#include "simulator/efficiency.h"
#include "simulator/estimate.h"
#include "simulator/parallel.h"
#include "simulator/validate_collectives.h"
#include "simulator/validate_training.h"
#include "simulator/validation_summary.h"

namespace lockstep::sim {
namespace {

/// A constant and where it may lie for physical reasons.
struct Dial {
  const char* name;
  double Efficiency::*value;
  double least;
  double most;
};

constexpr std::size_t kDials = 13;
constexpr std::array<Dial, kDials> kAll{{
    {"memory_fraction", &Efficiency::memory_fraction, 0.6, 0.95},  // STREAM: 0.75 to 0.92 of peak
    {"elementwise_passes", &Efficiency::elementwise_passes, 1, 3},
    {"kernel_floor", &Efficiency::kernel_floor, 0.2, 1},
    {"tile_traffic", &Efficiency::tile_traffic, 1, 4},  // the result once at least
    {"tile_load", &Efficiency::tile_load, 4, 64},
    {"flops_per_joule", &Efficiency::flops_per_joule, 0.7e12, 1.7e12},  // A100 to B200 at peak
    {"flash_backward", &Efficiency::flash_backward, 0.5, 1},
    {"flash_tile", &Efficiency::flash_tile, 64, 256},
    {"softmax_passes", &Efficiency::softmax_passes, 4, 12},
    {"link_fraction", &Efficiency::link_fraction, 0.6, 0.95},
    {"nvls_fraction", &Efficiency::nvls_fraction, 0.4, 0.95},
    {"network_fraction", &Efficiency::network_fraction, 0.5, 0.95},
    {"pipeline_stage_bytes", &Efficiency::pipeline_stage_bytes, 1 << 20, 16 << 20},
}};

struct Point {
  std::string group;  ///< what is put aside together
  bool collective = false;
  double measured = 0;
};

/// Predictions of all points.
using Predictions = std::vector<double>;
using Values = std::array<double, kDials>;

Efficiency efficiency_of(const Values& values) {
  Efficiency efficiency;
  for (std::size_t i = 0; i < kDials; ++i) {
    efficiency.*kAll[i].value = values[i];
  }
  return efficiency;
}

/// Repository or paper: the words before the first space, so that the tables of one are one group.
std::string group_of(const std::string& source) {
  const std::size_t slash = source.find('/');
  const std::size_t bracket = source.find(" (");
  return source.substr(0, slash == std::string::npos ? bracket : source.find(' ', slash));
}

/// A selected run, and what it amounts to for the closed form.
struct Run {
  TrainingRow row;
  Scenario scenario;
  PlanSummary summary;
};

class Rows {
 public:
  explicit Rows(const std::string& folder)
      : machines_{hardware_names(table(folder, "hardware")),
                  site_networks(table(folder, "sites")),
                  attention_kernels(table(folder, "attention")),
                  eager_contexts(table(folder, "contexts"))},
        collectives_{
            table(folder, "collectives"), table(folder, "hardware"), table(folder, "sites")} {
    for (const TrainingRow& row : training_rows(table(folder, "train_throughput"))) {
      if (left_out(row, ValidationTable::kTraining).empty()) {
        add(row);
      }
    }
    for (const CollectiveRow& row : validate_collectives(collectives_)) {
      if (row.refused.empty()) {
        points_.push_back({group_of(row.source), true, row.measured_s});
      }
    }
  }

  const std::vector<Point>& points() const { return points_; }

  /// By event simulation; zero for runs outside `group` where one is named.
  Predictions simulated(const Efficiency& efficiency, const std::string& group = "") const {
    return predicted(efficiency, [&](const Run& run) {
      const bool wanted = group.empty() || group_of(run.row.source) == group;
      return wanted ? predicted_step_time(run.scenario, efficiency) : 0.0;
    });
  }

  /// By the closed form.
  Predictions estimated(const Efficiency& efficiency) const {
    return predicted(efficiency, [&](const Run& run) {
      const bool tf32 = run.scenario.training.precision == Precision::kTf32;
      return Estimator(run.scenario.cluster, tf32, efficiency).estimate(run.summary).step_s;
    });
  }

 private:
  static CsvTable table(const std::string& folder, const char* name) {
    return load_csv(fmt::format("{}/{}.csv", folder, name), "refit");
  }

  void add(const TrainingRow& row) {
    try {
      Scenario scenario = scenario_of(row, machines_);
      if (claimed_fraction(row, scenario) > 1) {
        return;
      }
      PlanSummary summary = summarize_plan(scenario);
      runs_.push_back({row, std::move(scenario), std::move(summary)});
      points_.push_back({group_of(row.source), false, *row.step_time_s});
    } catch (const NotSupportedError&) {
      return;  // validate says why
    }
  }

  template <typename Seconds>
  Predictions predicted(const Efficiency& efficiency, Seconds seconds) const {
    Predictions predictions(runs_.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
      for (std::size_t i = next++; i < runs_.size(); i = next++) {
        predictions[i] = seconds(runs_[i]);
      }
    };
    std::vector<std::thread> helpers;
    for (int i = 1; i < thread_count(0, runs_.size()); ++i) {
      helpers.emplace_back(work);
    }
    work();
    for (std::thread& helper : helpers) {
      helper.join();
    }
    for (const CollectiveRow& row : validate_collectives(collectives_, efficiency)) {
      if (row.refused.empty()) {
        predictions.push_back(row.cost.seconds);
      }
    }
    return predictions;
  }

  Machines machines_;
  CollectiveTables collectives_;
  std::vector<Run> runs_;
  std::vector<Point> points_;  ///< runs first
};

/// The fits. They need many evaluations, so that they price by the closed form, times what the
/// simulation of the defaults says of each run more than the closed form of them.
class Fitter {
 public:
  explicit Fitter(const Rows& rows) : rows_(rows), defaults_(rows.simulated(kEfficiency)) {
    correction_ = rows.estimated(kEfficiency);
    for (std::size_t p = 0; p < correction_.size(); ++p) {
      correction_[p] = defaults_[p] / correction_[p];
    }
  }

  const Predictions& defaults() const { return defaults_; }

  /// Down one coordinate after the other, in steps that get smaller. `aside`: a group that takes no
  /// part; empty = none.
  Values fit(const std::string& aside) {
    Values values = middle();
    double best = loss(values, aside);
    for (double step = 0.4; step > 0.02; step /= 2) {
      for (bool moved = true; moved;) {
        moved = false;
        for (std::size_t i = 0; i < kDials; ++i) {
          for (const double direction : {-step, step}) {
            Values there = values;
            there[i] = std::clamp(values[i] * std::exp(direction), kAll[i].least, kAll[i].most);
            const double value = there == values ? best : loss(there, aside);
            if (value < best - 1e-6) {
              best = value;
              values = there;
              moved = true;
            }
          }
        }
      }
    }
    return values;
  }

 private:
  /// Nothing of the defaults is kept: they were chosen with every source in view.
  static Values middle() {
    Values values{};
    for (std::size_t i = 0; i < kDials; ++i) {
      values[i] = std::sqrt(kAll[i].least * kAll[i].most);
    }
    return values;
  }

  /// The mean of |log(predicted / measured)|, each at most a half so that no row that means
  /// something else counts for many; step times and collectives weigh the same.
  double loss(const Values& values, const std::string& aside) {
    constexpr double kMost = 0.5;
    const auto known = seen_.try_emplace(values);
    if (known.second) {
      known.first->second = rows_.estimated(efficiency_of(values));
    }
    const Predictions& predictions = known.first->second;
    std::array<double, 2> sum{};
    std::array<double, 2> count{};
    for (std::size_t p = 0; p < predictions.size(); ++p) {
      const Point& point = rows_.points()[p];
      if (point.group != aside) {
        const double error = std::log(predictions[p] * correction_[p] / point.measured);
        sum[point.collective ? 1 : 0] += std::min(kMost, std::abs(error));
        ++count[point.collective ? 1 : 0];
      }
    }
    return sum[0] / count[0] + sum[1] / count[1];
  }

  const Rows& rows_;
  Predictions defaults_;
  Predictions correction_;
  std::map<Values, Predictions> seen_;
};

ErrorStatistics errors_of(const Rows& rows,
                          const Predictions& predictions,
                          bool collective,
                          const std::string& group) {
  std::vector<double> errors;
  for (std::size_t p = 0; p < predictions.size(); ++p) {
    const Point& point = rows.points()[p];
    if (point.collective == collective && (group.empty() || point.group == group)) {
      errors.push_back(predictions[p] / point.measured - 1);
    }
  }
  return statistics_of(errors);
}

void print_errors(const std::string& name,
                  const Rows& rows,
                  const std::vector<const Predictions*>& columns,
                  const std::string& group) {
  for (const bool collective : {false, true}) {
    std::string line;
    for (const Predictions* predictions : columns) {
      const ErrorStatistics errors = errors_of(rows, *predictions, collective, group);
      if (errors.rows == 0) {
        break;
      }
      line += line.empty() ? fmt::format("{:<42} {:<12} {:>5}",
                                         name,
                                         collective ? "collectives" : "step times",
                                         errors.rows)
                           : "";
      line += fmt::format("  {:6.1f} {:6.1f}", 100 * errors.median, 100 * errors.p90);
    }
    if (!line.empty()) {
      std::puts(line.c_str());
    }
  }
}

int run(const std::string& folder) {
  const Rows rows(folder);
  Fitter fitter(rows);
  const Values all = fitter.fit("");
  const Predictions fitted = rows.simulated(efficiency_of(all));
  std::set<std::string> groups;
  for (const Point& point : rows.points()) {
    groups.insert(point.group);
  }
  Predictions held(rows.points().size());
  Values least = all;
  Values most = all;
  for (const std::string& group : groups) {
    const Values without = fitter.fit(group);
    const Predictions there = rows.simulated(efficiency_of(without), group);
    for (std::size_t p = 0; p < held.size(); ++p) {
      held[p] = rows.points()[p].group == group ? there[p] : held[p];
    }
    for (std::size_t i = 0; i < kDials; ++i) {
      least[i] = std::min(least[i], without[i]);
      most[i] = std::max(most[i], without[i]);
    }
    std::fputc('.', stderr);
  }
  std::fputc('\n', stderr);
  fmt::print(
      "{:<24} {:>10} {:>10} {:>24}\n", "constant", "default", "all rows", "a source put aside");
  for (std::size_t i = 0; i < kDials; ++i) {
    fmt::print("{:<24} {:>10.4g} {:>10.4g} {:>11.4g} .. {:.4g}\n",
               kAll[i].name,
               kEfficiency.*kAll[i].value,
               all[i],
               least[i],
               most[i]);
  }
  fmt::print("\n|error| in %: median and p90   {:>39}  {:>13}  {:>13}  {:>13}\n",
             "rows",
             "defaults",
             "fit of all",
             "put aside");
  const std::vector<const Predictions*> columns{&fitter.defaults(), &fitted, &held};
  for (const std::string& group : groups) {
    print_errors(group, rows, columns, group);
  }
  print_errors("all", rows, columns, "");
  return 0;
}

}  // namespace
}  // namespace lockstep::sim

int main(int argc, char** argv) {
  return lockstep::sim::run(argc > 1 ? argv[1] : "data/validation");
}
