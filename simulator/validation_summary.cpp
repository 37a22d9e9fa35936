#include "simulator/validation_summary.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::sim {
namespace {

constexpr std::size_t kWorstRows = 10;

double quantile(const std::vector<double>& sorted, double q) {
  const auto index = static_cast<std::size_t>(q * static_cast<double>(sorted.size()));
  return sorted[std::min(index, sorted.size() - 1)];
}

std::vector<double> errors_of(const std::vector<const ValidatedRow*>& rows) {
  std::vector<double> errors;
  errors.reserve(rows.size());
  for (const ValidatedRow* row : rows) {
    errors.push_back(row->error);
  }
  return errors;
}

template <typename Key>
std::vector<GroupStatistics> groups_by(const std::vector<const ValidatedRow*>& rows, Key key) {
  std::map<std::string, std::vector<const ValidatedRow*>> groups;
  for (const ValidatedRow* row : rows) {
    groups[key(*row)].push_back(row);
  }
  std::vector<GroupStatistics> result;
  result.reserve(groups.size());
  for (const auto& group : groups) {
    const std::string& name = group.first;
    std::vector<const ValidatedRow*> rest;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(rest), [&](const ValidatedRow* row) {
      return key(*row) != name;
    });
    result.push_back(
        {name, statistics_of(errors_of(group.second)), statistics_of(errors_of(rest))});
  }
  std::stable_sort(
      result.begin(), result.end(), [](const GroupStatistics& a, const GroupStatistics& b) {
        return a.inside.rows > b.inside.rows;
      });
  return result;
}

}  // namespace

ErrorStatistics statistics_of(std::vector<double> errors) {
  ErrorStatistics result;
  result.rows = errors.size();
  if (errors.empty()) {
    return result;
  }
  std::sort(errors.begin(), errors.end());
  result.bias = quantile(errors, 0.5);
  for (double& error : errors) {
    error = std::abs(error);
  }
  std::sort(errors.begin(), errors.end());
  result.median = quantile(errors, 0.5);
  result.p90 = quantile(errors, 0.9);
  return result;
}

std::vector<MetricSummary> summarize(const std::vector<ValidatedRow>& rows) {
  std::vector<MetricSummary> summaries;
  for (const Metric metric : {Metric::kStepTime,
                              Metric::kTokensPerSecond,
                              Metric::kPeakMemory,
                              Metric::kCollectiveTime}) {
    std::vector<const ValidatedRow*> selected;
    std::vector<const ValidatedRow*> others;
    for (const ValidatedRow& row : rows) {
      if (row.metric == metric) {
        (row.left_out.empty() ? selected : others).push_back(&row);
      }
    }
    if (selected.empty() && others.empty()) {
      continue;
    }
    MetricSummary& summary = summaries.emplace_back();
    summary.metric = metric;
    summary.all = statistics_of(errors_of(selected));
    summary.by_source = groups_by(selected, [](const ValidatedRow& row) { return row.source; });
    summary.by_hardware = groups_by(selected, [](const ValidatedRow& row) { return row.hardware; });
    summary.by_regime = groups_by(selected, [](const ValidatedRow& row) { return row.regime; });
    summary.left_out = statistics_of(errors_of(others));
    summary.by_reason = groups_by(others, [](const ValidatedRow& row) { return row.left_out; });
    for (GroupStatistics& group : summary.by_reason) {
      group.rest = {};
    }
    std::stable_sort(
        selected.begin(), selected.end(), [](const ValidatedRow* a, const ValidatedRow* b) {
          return std::abs(a->error) > std::abs(b->error);
        });
    selected.resize(std::min(selected.size(), kWorstRows));
    summary.worst = std::move(selected);
  }
  return summaries;
}

}  // namespace lockstep::sim
