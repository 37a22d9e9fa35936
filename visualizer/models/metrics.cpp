#include "visualizer/models/metrics.h"

#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/timeline_text.h"

namespace lockstep::view {
namespace {

std::string percent(double fraction) {
  return fmt::format("{:.1f} %", 100 * fraction);
}

/// Means over ranks, of all groups together.
double mean_exposed_s(const Report& report) {
  double sum = 0;
  for (std::size_t group = 0; group < report.groups.size(); ++group) {
    sum += report.mean_exposed_s(static_cast<int>(group)) +
           report.mean_waiting_s(static_cast<int>(group));
  }
  return sum;
}

double mean_sent_bytes(const Report& report) {
  double sum = 0;
  for (const ReportTraffic& traffic : report.traffic) {
    sum += traffic.sent_bytes;
  }
  return sum;
}

Metric peak_memory(const MemoryReport& memory) {
  const RankMemory& worst = memory.worst();
  return {MetricId::kPeakMemory,
          static_cast<double>(worst.peak_bytes()),
          bytes_text(worst.peak_bytes()),
          fmt::format("rank {}: {} / {}",
                      worst.rank,
                      percent(static_cast<double>(worst.peak_bytes()) /
                              static_cast<double>(memory.device_bytes)),
                      bytes_text(memory.device_bytes)),
          true};
}

}  // namespace

std::vector<Metric> metrics(const Report& report, const MemoryReport& memory) {
  const double exposed = mean_exposed_s(report);
  const double sent = mean_sent_bytes(report);
  return {
      {MetricId::kStepTime, report.step_time_s(), time_text(report.step_time, true), "", true},
      {MetricId::kTokens,
       report.tokens_per_s(),
       grouped(std::llround(report.tokens_per_s())),
       "",
       false},
      {MetricId::kMfu, report.mfu(), percent(report.mfu()), "", false},
      peak_memory(memory),
      {MetricId::kExposed,
       report.exposed_fraction(),
       percent(report.exposed_fraction()),
       time_text(std::llround(exposed * 1e9), true),
       true},
      {MetricId::kBubble, report.bubble_fraction(), percent(report.bubble_fraction()), "", true},
      {MetricId::kSent, sent, bytes_text(std::llround(sent)), "", true},
  };
}

std::string difference_text(const Metric& now, const Metric& before) {
  const bool fraction =
      now.id == MetricId::kMfu || now.id == MetricId::kExposed || now.id == MetricId::kBubble;
  if (fraction) {
    const double points = 100 * (now.value - before.value);
    return std::abs(points) < 0.05 ? "" : fmt::format("{:+.1f} pp", points);
  }
  if (before.value == 0) {
    return now.value == 0 ? "" : "+" + now.text;
  }
  const double change = 100 * (now.value / before.value - 1);
  return std::abs(change) < 0.05 ? "" : fmt::format("{:+.1f} %", change);
}

}  // namespace lockstep::view
