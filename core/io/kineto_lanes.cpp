#include "core/io/kineto_lanes.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/io/kineto_kinds.h"

namespace lockstep {
namespace {

constexpr int kMostParents = 1000;

/// Where a lane of the file went.
struct Place {
  std::int32_t rank = -1;
  std::int32_t lane = -1;
};

class RankBuilder {
 public:
  RankBuilder(KinetoEvents events, std::string_view file, ImportedTrace& trace)
      : events_(std::move(events)), file_(file), trace_(trace) {}

  void run() {
    for (KinetoLane& lane : events_.lanes) {
      close_marks(lane);
      order(lane.spans);
      for (ImportedSpan& span : lane.spans) {
        finish(span);
      }
    }
    place_lanes();
    bind_flows();
    write_notes();
  }

 private:
  /// Phases B and E: an E closes the last open B; what is open at the end lasts until the last
  /// time of the lane, as in Perfetto.
  void close_marks(KinetoLane& lane) {
    if (lane.marks.empty()) {
      return;
    }
    std::stable_sort(lane.marks.begin(),
                     lane.marks.end(),
                     [](const KinetoMark& a, const KinetoMark& b) { return a.time < b.time; });
    std::vector<ImportedSpan> open;
    for (const KinetoMark& mark : lane.marks) {
      if (mark.begins) {
        ImportedSpan span;
        span.begin = mark.time;
        span.name = mark.name;
        span.category = mark.category;
        open.push_back(span);
      } else if (open.empty()) {
        ++unmatched_;
      } else {
        open.back().end = mark.time;
        lane.spans.push_back(open.back());
        open.pop_back();
      }
    }
    unmatched_ += static_cast<std::int64_t>(open.size());
    for (ImportedSpan& span : open) {
      span.end = lane.marks.back().time;
      lane.spans.push_back(span);
    }
    lane.marks = {};
  }

  static void order(std::vector<ImportedSpan>& spans) {
    const auto before = [](const ImportedSpan& a, const ImportedSpan& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    };
    if (!std::is_sorted(spans.begin(), spans.end(), before)) {
      std::stable_sort(spans.begin(), spans.end(), before);
    }
  }

  void finish(ImportedSpan& span) {
    const std::string& name = trace_.names.text(span.name);
    span.kind = kind_of(span.category, span.name);
    if (span.collective >= 0 || span.kind != ImportedKind::kCommunication) {
      return;
    }
    const std::string_view kind = collective_kind(name);
    if (!kind.empty()) {
      ImportedCollective about;
      about.kind = trace_.names.intern(kind);
      span.collective = static_cast<std::int32_t>(trace_.collectives.size());
      trace_.collectives.push_back(about);
    }
  }

  ImportedKind kind_of(NameId category, NameId name) {
    const auto [found, fresh] =
        kinds_.emplace((std::uint64_t{category} << 32U) | name, ImportedKind::kCpu);
    if (fresh) {
      found->second = kind_of_span(trace_.names.text(category), trace_.names.text(name));
    }
    return found->second;
  }

  // Lanes ---------------------------------------------------------------------------------------

  void place_lanes() {
    places_.resize(events_.lanes.size());
    std::vector<std::size_t> order(events_.lanes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return sort_key(events_.lanes[a]) < sort_key(events_.lanes[b]);
    });
    for (const std::size_t number : order) {
      KinetoLane& lane = events_.lanes[number];
      if (!lane.spans.empty()) {
        const auto rank = rank_index(process_rank(lane.pid));
        std::vector<ImportedLane>& lanes = trace_.ranks[static_cast<std::size_t>(rank)].lanes;
        places_[number] = {rank, static_cast<std::int32_t>(lanes.size())};
        lanes.push_back(make_lane(lane));
      }
    }
    if (first_rank_ == trace_.ranks.size()) {
      rank_index(std::nullopt);  // a file without spans is a rank that did nothing
    }
  }

  using SortKey = std::tuple<std::int64_t, EventId, std::int64_t, EventId>;
  SortKey sort_key(const KinetoLane& lane) const {
    const auto process = events_.processes.find(lane.pid);
    const bool sorted = process != events_.processes.end() && process->second.sorted;
    return {sorted ? process->second.sort : 0, lane.pid, lane.sorted ? lane.sort : 0, lane.tid};
  }

  /// Of a trace in which ranks are processes.
  std::optional<int> process_rank(EventId pid) const {
    const auto found = events_.processes.find(pid);
    if (found == events_.processes.end()) {
      return std::nullopt;
    }
    const std::optional<int> by_name = rank_in_name(trace_.names.text(found->second.name));
    return by_name ? by_name : rank_in_name(trace_.names.text(found->second.label));
  }

  /// What the whole file is, unless its processes say otherwise.
  std::optional<int> file_rank() const {
    const std::size_t slash = file_.rfind('/');
    return events_.rank
               ? events_.rank
               : rank_in_name(slash == std::string_view::npos ? file_ : file_.substr(slash + 1));
  }

  std::int32_t rank_index(std::optional<int> of_process) {
    const std::optional<int> rank = events_.rank || !of_process ? file_rank() : of_process;
    const auto [found, fresh] =
        rank_indices_.emplace(rank, static_cast<std::int32_t>(trace_.ranks.size()));
    if (fresh) {
      ImportedRank& it = trace_.ranks.emplace_back();
      it.rank = rank;
      it.file = std::string(file_);
      it.world_size = events_.world_size;
      it.backend = events_.backend;
      it.device = events_.device;
    }
    return found->second;
  }

  ImportedLane make_lane(KinetoLane& lane) {
    ImportedLane result;
    const auto process = events_.processes.find(lane.pid);
    if (process != events_.processes.end()) {
      result.process = process->second.name;
      result.process_label = process->second.label;
    }
    if (result.process == 0) {
      result.process = id_name(lane.pid);
    }
    result.name = lane.name != 0 ? lane.name : id_name(lane.tid);
    result.spans = std::move(lane.spans);
    nest(result);
    result.kind = kind_of_lane(result);
    for (ImportedSpan& span : result.spans) {
      span.begin += events_.base;
      span.end += events_.base;
    }
    return result;
  }

  NameId id_name(EventId id) {
    return id < kNamedIds + static_cast<EventId>(trace_.names.size())
               ? static_cast<NameId>(id - kNamedIds)
               : trace_.names.intern(std::to_string(id));
  }

  static void nest(ImportedLane& lane) {
    constexpr std::size_t kDeepest = std::numeric_limits<std::uint16_t>::max();
    std::vector<Nanoseconds> open;
    for (ImportedSpan& span : lane.spans) {
      while (!open.empty() && open.back() <= span.begin) {
        open.pop_back();
      }
      lane.overlaps = lane.overlaps || (!open.empty() && span.end > open.back());
      span.depth = static_cast<std::uint16_t>(std::min(open.size(), kDeepest));
      lane.depth = std::max(lane.depth, span.depth);
      open.push_back(span.end);
    }
  }

  static ImportedKind kind_of_lane(const ImportedLane& lane) {
    std::array<std::size_t, kImportedKindCount> count{};
    for (const ImportedSpan& span : lane.spans) {
      ++count[static_cast<std::size_t>(span.kind)];
    }
    constexpr auto kAnnotations = static_cast<std::ptrdiff_t>(ImportedKind::kAnnotation);
    const auto most = std::max_element(count.begin(), count.begin() + kAnnotations);
    return *most == 0 ? ImportedKind::kAnnotation : static_cast<ImportedKind>(most - count.begin());
  }

  // Arrows --------------------------------------------------------------------------------------

  /// Events of one (id, category, name) make a chain in the order of their times.
  void bind_flows() {
    std::vector<KinetoFlowMark>& marks = events_.flows;
    const auto key = [](const KinetoFlowMark& mark) {
      return std::tuple(mark.category, mark.name, mark.id);
    };
    const auto step = [](const KinetoFlowMark& mark) {
      return mark.phase == 's' ? 0 : mark.phase == 't' ? 1 : 2;
    };
    std::stable_sort(
        marks.begin(), marks.end(), [&](const KinetoFlowMark& a, const KinetoFlowMark& b) {
          return std::tuple(key(a), a.time, step(a)) < std::tuple(key(b), b.time, step(b));
        });
    for (std::size_t i = 1; i < marks.size(); ++i) {
      const KinetoFlowMark& from = marks[i - 1];
      const KinetoFlowMark& to = marks[i];
      if (key(from) == key(to) && from.phase != 'f' && to.phase != 's') {
        trace_.flows.push_back({from.name, flow_end(from), flow_end(to)});
      }
    }
  }

  ImportedFlowEnd flow_end(const KinetoFlowMark& mark) const {
    const Place place = places_[mark.lane];
    ImportedFlowEnd end{place.rank, place.lane, kNoSpanNumber, mark.time + events_.base};
    if (place.rank < 0) {
      return end;
    }
    const ImportedLane& lane = trace_.ranks[static_cast<std::size_t>(place.rank)]
                                   .lanes[static_cast<std::size_t>(place.lane)];
    auto at =
        std::upper_bound(lane.spans.begin(),
                         lane.spans.end(),
                         end.time,
                         [](Nanoseconds time, const ImportedSpan& it) { return time < it.begin; });
    // Siblings that have ended lie between a span and its children.
    for (int i = 0; i < kMostParents && at != lane.spans.begin(); ++i) {
      --at;
      if (at->end > end.time || (at->begin == end.time && at->end == end.time)) {
        end.span = static_cast<std::uint32_t>(at - lane.spans.begin());
        break;
      }
      if (at->depth == 0 && !lane.overlaps) {
        break;
      }
    }
    return end;
  }

  void write_notes() {
    if (events_.negative > 0) {
      trace_.notes.push_back(
          fmt::format("{}: {} spans of negative length, taken as empty", file_, events_.negative));
    }
    if (unmatched_ > 0) {
      trace_.notes.push_back(fmt::format("{}: {} begins or ends alone", file_, unmatched_));
    }
    if (events_.unclosed_array) {
      trace_.notes.push_back(fmt::format("{}: the last ] is missing", file_));
    }
  }

  KinetoEvents events_;
  std::string_view file_;
  ImportedTrace& trace_;
  const std::size_t first_rank_ = trace_.ranks.size();
  std::int64_t unmatched_ = 0;
  std::unordered_map<std::uint64_t, ImportedKind> kinds_;  ///< by category and name
  std::map<std::optional<int>, std::int32_t> rank_indices_;
  std::vector<Place> places_;  ///< by lane of the file
};

}  // namespace

void add_kineto_ranks(KinetoEvents events, std::string_view file, ImportedTrace& trace) {
  RankBuilder(std::move(events), file, trace).run();
}

}  // namespace lockstep
