#include "visualizer/models/imported_text.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {
namespace {

using Intervals = std::vector<TimeWindow>;

/// Of spans of one kind in the rank's lanes, clipped, merged, in order.
Intervals covered(const ImportedRank& rank, ImportedKind kind, const TimeWindow& window) {
  Intervals found;
  for (const ImportedLane& lane : rank.lanes) {
    for (const ImportedSpan& span : lane.spans) {
      if (span.begin >= window.to) {
        break;
      }
      if (span.kind == kind && span.end > window.from) {
        found.push_back({std::max(span.begin, window.from), std::min(span.end, window.to)});
      }
    }
  }
  std::sort(found.begin(), found.end(), [](const TimeWindow& a, const TimeWindow& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  Intervals merged;
  for (const TimeWindow& it : found) {
    if (!merged.empty() && it.from <= merged.back().to) {
      merged.back().to = std::max(merged.back().to, it.to);
    } else {
      merged.push_back(it);
    }
  }
  return merged;
}

Nanoseconds length(const Intervals& intervals) {
  Nanoseconds sum = 0;
  for (const TimeWindow& it : intervals) {
    sum += it.length();
  }
  return sum;
}

Nanoseconds overlap(const Intervals& a, const Intervals& b) {
  Nanoseconds sum = 0;
  std::size_t j = 0;
  for (const TimeWindow& it : a) {
    while (j < b.size() && b[j].to <= it.from) {
      ++j;
    }
    for (std::size_t k = j; k < b.size() && b[k].from < it.to; ++k) {
      sum += std::min(it.to, b[k].to) - std::max(it.from, b[k].from);
    }
  }
  return sum;
}

bool has(const ImportedRank& rank, ImportedKind kind) {
  return std::any_of(rank.lanes.begin(), rank.lanes.end(), [&](const ImportedLane& lane) {
    return std::any_of(lane.spans.begin(), lane.spans.end(), [&](const ImportedSpan& span) {
      return span.kind == kind;
    });
  });
}

Nanoseconds busiest_thread(const ImportedRank& rank, const TimeWindow& window) {
  Nanoseconds most = 0;
  for (const ImportedLane& lane : rank.lanes) {
    Nanoseconds sum = 0;
    Nanoseconds until = window.from;
    for (const ImportedSpan& span : lane.spans) {
      if (span.kind == ImportedKind::kCpu && span.begin < window.to) {
        const Nanoseconds end = std::min(span.end, window.to);
        sum += std::max<Nanoseconds>(0, end - std::max(span.begin, until));
        until = std::max(until, end);
      }
    }
    most = std::max(most, sum);
  }
  return most;
}

std::string share(Nanoseconds part, Nanoseconds whole) {
  return percent_text(static_cast<double>(part) /
                      static_cast<double>(std::max<Nanoseconds>(1, whole)));
}

}  // namespace

std::vector<ImportedBusy> busy_times(const ImportedTrace& trace, const TimeWindow& window) {
  std::vector<ImportedBusy> all;
  for (const ImportedRank& rank : trace.ranks) {
    const Intervals kernels = covered(rank, ImportedKind::kCompute, window);
    const Intervals transfers = covered(rank, ImportedKind::kCommunication, window);
    ImportedBusy it;
    it.rank = name_of(rank);
    it.kernels = length(kernels);
    it.transfers = length(transfers);
    it.exposed = it.transfers - overlap(transfers, kernels);
    it.host = busiest_thread(rank, window);
    it.has_kernels = has(rank, ImportedKind::kCompute);
    it.has_transfers = has(rank, ImportedKind::kCommunication);
    all.push_back(std::move(it));
  }
  return all;
}

std::vector<ImportedName> longest_names(const ImportedLanes& lanes, std::size_t most) {
  const ImportedTrace& trace = lanes.trace();
  std::vector<ImportedName> by_id(trace.names.size());
  for (const ImportedRank& rank : trace.ranks) {
    for (const ImportedLane& lane : rank.lanes) {
      for (const ImportedSpan& span : lane.spans) {
        ++by_id[span.name].count;
        by_id[span.name].time += span.end - span.begin;
      }
    }
  }
  std::vector<std::pair<Nanoseconds, NameId>> order;
  for (NameId id = 0; id < by_id.size(); ++id) {
    if (by_id[id].count > 0) {
      order.emplace_back(-by_id[id].time, id);
    }
  }
  const std::size_t count = std::min(most, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
  std::vector<ImportedName> names;
  for (std::size_t i = 0; i < count; ++i) {
    names.push_back(std::move(by_id[order[i].second]));
    names.back().name = trace.names.text(order[i].second);
  }
  return names;
}

std::string imported_text(const ImportedLanes& lanes) {
  const ImportedTrace& trace = lanes.trace();
  const Nanoseconds whole = lanes.whole().length();
  std::string text = fmt::format("{} ranks, {} spans, {}\n\n",
                                 trace.ranks.size(),
                                 grouped(static_cast<std::int64_t>(lanes.spans())),
                                 time_text(whole));
  TextTable busy({{"rank"},
                  {"kernels", Align::kRight},
                  {"transfers", Align::kRight},
                  {"of these exposed", Align::kRight},
                  {"host", Align::kRight}});
  for (const ImportedBusy& it : busy_times(trace, lanes.whole())) {
    busy.add({it.rank,
              it.has_kernels ? share(it.kernels, whole) : "-",
              it.has_transfers ? share(it.transfers, whole) : "-",
              it.has_transfers && it.has_kernels ? share(it.exposed, whole) : "-",
              share(it.host, whole)});
  }
  text += busy.text("  ") + "\n";
  TextTable rows({{"rank"}, {"lane"}, {"spans", Align::kRight}, {"what it is"}});
  for (const ImportedRank& rank : trace.ranks) {
    for (const ImportedLane& lane : rank.lanes) {
      rows.add({name_of(rank),
                trace.names.text(lane.name),
                grouped(static_cast<std::int64_t>(lane.spans.size())),
                std::string(name_of(lane.kind))});
    }
  }
  text += rows.text("  ") + "\n";
  constexpr std::size_t kMostNames = 12;
  TextTable names({{"longest in sum"}, {"times", Align::kRight}, {"together", Align::kRight}});
  for (const ImportedName& it : longest_names(lanes, kMostNames)) {
    names.add(
        {cut_text(it.name, 60), grouped(static_cast<std::int64_t>(it.count)), time_text(it.time)});
  }
  text += names.text("  ");
  for (const std::string& note : trace.notes) {
    text += "note: " + note + "\n";
  }
  if (lanes.left_out() > 0) {
    text += fmt::format("{} spans nest too deep to be shown\n", lanes.left_out());
  }
  return text;
}

}  // namespace lockstep::view
