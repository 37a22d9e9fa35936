#include "visualizer/models/imported_lanes.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "core/report_text.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {
namespace {

constexpr std::size_t kMostLevels = 24;

std::string exact(Nanoseconds time) {
  return fmt::format("{} ({} ns)", time_text(time, true), grouped(time));
}

bool begins_with_library(std::string_view name) {
  constexpr std::array<std::string_view, 4> kLibraries{"nccl:", "gloo:", "mpi:", "ucc:"};
  return std::any_of(kLibraries.begin(), kLibraries.end(), [&](std::string_view library) {
    return name.starts_with(library);
  });
}

/// What hosts do, as far as PyTorch's names tell.
Paint paint_of_host(std::string_view name) {
  if (name.starts_with("Optimizer.")) {
    return Paint::kOptimizer;
  }
  const bool backward =
      name.starts_with("autograd::engine::") || name.find("Backward") != std::string_view::npos;
  return backward ? Paint::kBackward : Paint::kHost;
}

/// Streams of devices and threads that move data: what a timeline is opened for.
bool is_work(const ImportedLane& lane) {
  return lane.kind == ImportedKind::kCompute || lane.kind == ImportedKind::kCommunication ||
         lane.kind == ImportedKind::kCopy;
}

/// "stream 7", "thread 812".
std::string title_of(const ImportedTrace& trace, const ImportedLane& lane) {
  std::string name = trace.names.text(lane.name);
  while (!name.empty() && name.back() == ' ') {
    name.pop_back();
  }
  const bool number = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
  if (!number) {
    return name.empty() ? std::string(name_of(lane.kind)) : name;
  }
  const bool stream = lane.kind == ImportedKind::kCompute || lane.kind == ImportedKind::kCopy;
  return (stream ? "stream " : "thread ") + name;
}

}  // namespace

Paint paint_of(const ImportedTrace& trace, const ImportedSpan& span) {
  const std::string& name = trace.names.text(span.name);
  switch (span.kind) {
    case ImportedKind::kCommunication:
      return trace.names.text(span.category) == "waiting" ? Paint::kWaiting : Paint::kTransfer;
    case ImportedKind::kCompute:
      return Paint::kKernel;
    case ImportedKind::kCopy:
      return Paint::kOther;
    case ImportedKind::kAnnotation:
      if (begins_with_library(name)) {
        return Paint::kTransfer;
      }
      return name.starts_with("Optimizer.") ? Paint::kOptimizer : Paint::kOther;
    case ImportedKind::kCpu:
      break;
  }
  // c10d is PyTorch's layer of collectives.
  return span.collective >= 0 || name.starts_with("c10d::") ? Paint::kTransfer
                                                            : paint_of_host(name);
}

std::string name_of(const ImportedRank& rank) {
  return rank.rank ? fmt::format("rank {}", *rank.rank)
                   : std::filesystem::path(rank.file).filename().string();
}

// ---- Rows ---------------------------------------------------------------------------------------

ImportedLanes::ImportedLanes(const ImportedTrace& trace) : trace_(trace) {
  std::uint32_t next = 0;
  std::vector<std::vector<std::uint32_t>> first_items;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    const std::vector<ImportedLane>& lanes = trace.ranks[rank].lanes;
    first_items.emplace_back();
    for (const ImportedLane& lane : lanes) {
      first_items.back().push_back(next);
      next += static_cast<std::uint32_t>(lane.spans.size());
    }
    for (const bool work : {true, false}) {
      for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
        if (is_work(lanes[lane]) == work) {
          add_lane(rank, lane, first_items.back()[lane]);
        }
      }
    }
  }
  add_flows(first_items);
}

void ImportedLanes::add_lane(std::size_t rank, std::size_t lane, std::uint32_t first_item) {
  const std::vector<ImportedSpan>& spans = trace_.ranks[rank].lanes[lane].spans;
  std::vector<Source> levels;
  std::vector<Nanoseconds> free;  ///< by level: where its last span ended
  for (std::uint32_t i = 0; i < spans.size(); ++i) {
    std::size_t level = 0;
    while (level < free.size() && free[level] > spans[i].begin) {
      ++level;
    }
    if (level == kMostLevels) {
      ++left_out_;
      continue;
    }
    if (level == free.size()) {
      free.push_back(0);
      levels.push_back({.rank = rank, .lane = lane, .first_item = first_item});
    }
    free[level] = spans[i].end;
    levels[level].spans.push_back(i);
    levels[level].paints.push_back(paint_of(trace_, spans[i]));
  }
  for (std::size_t level = 0; level < levels.size(); ++level) {
    add_row(std::move(levels[level]), static_cast<int>(level));
  }
}

void ImportedLanes::add_row(Source source, int level) {
  source.level = level;
  std::array<bool, kPaintCount> used{};
  for (const Paint paint : source.paints) {
    used[static_cast<std::size_t>(paint)] = true;
  }
  for (int i = 0; i < kPaintCount; ++i) {
    if (!used[static_cast<std::size_t>(i)]) {
      continue;
    }
    source.used.push_back(static_cast<Paint>(i));
    std::vector<Nanoseconds>& sum = source.before.emplace_back();
    sum.reserve(source.spans.size() + 1);
    sum.push_back(0);
    for (std::size_t k = 0; k < source.spans.size(); ++k) {
      const ImportedSpan& span = span_at(source, k);
      sum.push_back(sum.back() +
                    (source.paints[k] == source.used.back() ? span.end - span.begin : 0));
    }
  }
  const ImportedRank& rank = trace_.ranks[source.rank];
  rows_.push_back(
      {name_of(rank), level == 0 ? title_of(trace_, lane_of(source)) : "", rank.rank.value_or(-1)});
  sources_.push_back(std::move(source));
}

void ImportedLanes::add_flows(const std::vector<std::vector<std::uint32_t>>& first_items) {
  const auto add = [&](std::vector<FlowAt>& list, const ImportedFlowEnd& end, std::size_t flow) {
    if (end.rank >= 0 && end.lane >= 0 && end.span != kNoSpanNumber) {
      const std::vector<std::uint32_t>& lanes = first_items[static_cast<std::size_t>(end.rank)];
      list.push_back(
          {lanes[static_cast<std::size_t>(end.lane)] + end.span, static_cast<std::uint32_t>(flow)});
    }
  };
  for (std::size_t i = 0; i < trace_.flows.size(); ++i) {
    add(leaving_, trace_.flows[i].from, i);
    add(arriving_, trace_.flows[i].to, i);
  }
  for (std::vector<FlowAt>* list : {&leaving_, &arriving_}) {
    std::stable_sort(list->begin(), list->end(), [](const FlowAt& a, const FlowAt& b) {
      return a.item < b.item;
    });
  }
}

std::size_t ImportedLanes::spans() const {
  std::size_t sum = 0;
  for (const Source& source : sources_) {
    sum += source.spans.size();
  }
  return sum;
}

// ---- Boxes --------------------------------------------------------------------------------------

std::size_t ImportedLanes::begins_at(const Source& source,
                                     std::size_t from,
                                     Nanoseconds time) const {
  // Doubling first: the next box is mostly near.
  const std::size_t count = source.spans.size();
  std::size_t stride = 1;
  std::size_t low = from;
  while (low + stride < count && span_at(source, low + stride).begin < time) {
    low += stride;
    stride *= 2;
  }
  const auto first = source.spans.begin() + static_cast<std::ptrdiff_t>(low);
  const auto last =
      source.spans.begin() + static_cast<std::ptrdiff_t>(std::min(count, low + stride + 1));
  const std::vector<ImportedSpan>& spans = lane_of(source).spans;
  const auto found = std::partition_point(
      first, last, [&](std::uint32_t index) { return spans[index].begin < time; });
  return static_cast<std::size_t>(found - source.spans.begin());
}

LaneBox ImportedLanes::single(const Source& source, std::size_t index) const {
  const ImportedSpan& span = span_at(source, index);
  return {span.begin,
          span.end,
          span.end - span.begin,
          source.paints[index],
          source.first_item + source.spans[index],
          1};
}

LaneBox ImportedLanes::folded(const Source& source, std::size_t from, std::size_t to) const {
  LaneBox box{.begin = span_at(source, from).begin, .end = span_at(source, to - 1).end};
  box.count = static_cast<std::uint32_t>(to - from);
  Nanoseconds most = -1;
  for (std::size_t i = 0; i < source.used.size(); ++i) {
    const Nanoseconds time = source.before[i][to] - source.before[i][from];
    box.busy += time;
    if (time > most) {
      most = time;
      box.paint = source.used[i];
    }
  }
  return box;
}

std::vector<LaneBox> ImportedLanes::boxes(std::size_t row,
                                          const TimeWindow& window,
                                          Nanoseconds narrowest) const {
  const Source& source = sources_[row];
  std::vector<LaneBox> boxes;
  const std::size_t count = source.spans.size();
  std::size_t i = begins_at(source, 0, window.from);
  if (i > 0 && span_at(source, i - 1).end > window.from) {
    --i;
  }
  while (i < count && span_at(source, i).begin < window.to) {
    const ImportedSpan& span = span_at(source, i);
    if (narrowest <= 0 || span.end - span.begin >= narrowest) {
      boxes.push_back(single(source, i++));
      continue;
    }
    // Cells lie at multiples of their width, so that they stay where they are when one pans.
    const Nanoseconds cell = (span.begin / narrowest + 1) * narrowest;
    std::size_t next = begins_at(source, i, cell);
    const ImportedSpan& last = span_at(source, next - 1);
    if (next - i > 1 && last.end - last.begin >= narrowest) {
      --next;
    }
    boxes.push_back(next - i == 1 ? single(source, i) : folded(source, i, next));
    i = next;
  }
  return boxes;
}

std::array<Nanoseconds, kPaintCount> ImportedLanes::times(std::size_t row,
                                                          const TimeWindow& window) const {
  const Source& source = sources_[row];
  std::array<Nanoseconds, kPaintCount> times{};
  const std::size_t from = begins_at(source, 0, window.from);
  const std::size_t to = begins_at(source, from, window.to);
  for (std::size_t i = 0; i < source.used.size(); ++i) {
    times[static_cast<std::size_t>(source.used[i])] = source.before[i][to] - source.before[i][from];
  }
  // The span that is open where the window begins is not counted yet, the one at its end too far.
  const auto add = [&](std::size_t index, Nanoseconds time) {
    times[static_cast<std::size_t>(source.paints[index])] += time;
  };
  if (from > 0) {
    const Nanoseconds end = std::min(span_at(source, from - 1).end, window.to);
    add(from - 1, std::max<Nanoseconds>(0, end - window.from));
  }
  if (to > from) {
    add(to - 1, -std::max<Nanoseconds>(0, span_at(source, to - 1).end - window.to));
  }
  return times;
}

LaneBox ImportedLanes::find(std::size_t row, std::uint32_t item) const {
  const Source& source = sources_[row];
  if (item < source.first_item) {
    return {.count = 0};
  }
  const std::uint32_t span = item - source.first_item;
  const auto found = std::lower_bound(source.spans.begin(), source.spans.end(), span);
  if (found == source.spans.end() || *found != span) {
    return {.count = 0};
  }
  return single(source, static_cast<std::size_t>(found - source.spans.begin()));
}

// ---- Words --------------------------------------------------------------------------------------

std::string ImportedLanes::label(std::size_t row, const LaneBox& box) const {
  if (box.item == kNoItem) {
    return fmt::format("{} \xC3\x97", box.count);
  }
  const Source& source = sources_[row];
  const ImportedSpan& span = lane_of(source).spans[box.item - source.first_item];
  const std::string& name = trace_.names.text(span.name);
  if (span.collective < 0) {
    return name;
  }
  const auto& collective = trace_.collectives[static_cast<std::size_t>(span.collective)];
  const std::string& kind = trace_.names.text(collective.kind);
  return kind.empty() ? name : fmt::format("{} ({})", kind, name);
}

std::uint64_t ImportedLanes::name_key(std::size_t row, std::uint32_t item) const {
  const Source& source = sources_[row];
  const ImportedSpan& span = lane_of(source).spans[item - source.first_item];
  const auto collective = static_cast<std::uint32_t>(span.collective);
  const NameId kind = span.collective < 0 ? 0 : trace_.collectives[collective].kind;
  return (static_cast<std::uint64_t>(kind) << 32U) | span.name;
}

void ImportedLanes::add_collective(DetailLines& lines, const ImportedSpan& span) const {
  if (span.collective < 0) {
    return;
  }
  const ImportedCollective& it = trace_.collectives[static_cast<std::size_t>(span.collective)];
  const auto add_name = [&](const char* title, NameId name) {
    if (name != 0) {
      lines.emplace_back(title, trace_.names.text(name));
    }
  };
  const auto add_number = [&](const char* title, const std::optional<std::int64_t>& number) {
    if (number) {
      lines.emplace_back(title, grouped(*number));
    }
  };
  add_name("collective", it.kind);
  add_name("group", it.group);
  add_name("group's purpose", it.group_description);
  add_name("ranks", it.ranks);
  add_number("group size", it.group_size);
  add_number("number in the group", it.sequence);
  if (it.bytes) {
    lines.emplace_back("bytes", bytes_text(*it.bytes));
  }
  add_number("elements in", it.in_elements);
  add_number("elements out", it.out_elements);
  add_name("element type", it.dtype);
}

std::string ImportedLanes::place_of(const ImportedFlowEnd& end) const {
  const ImportedRank& rank = trace_.ranks[static_cast<std::size_t>(end.rank)];
  const ImportedLane& lane = rank.lanes[static_cast<std::size_t>(end.lane)];
  const std::string what =
      end.span == kNoSpanNumber ? exact(end.time) : trace_.names.text(lane.spans[end.span].name);
  return fmt::format("{} ({}, {})", what, name_of(rank), title_of(trace_, lane));
}

void ImportedLanes::add_arrows(DetailLines& lines, std::uint32_t item) const {
  constexpr int kMost = 4;
  const auto add = [&](const std::vector<FlowAt>& list, const char* title, bool leaving) {
    auto at =
        std::lower_bound(list.begin(), list.end(), item, [](const FlowAt& it, std::uint32_t i) {
          return it.item < i;
        });
    for (int n = 0; n < kMost && at != list.end() && at->item == item; ++n, ++at) {
      const ImportedFlow& flow = trace_.flows[at->flow];
      const ImportedFlowEnd& other = leaving ? flow.to : flow.from;
      if (other.rank >= 0 && other.lane >= 0) {
        lines.emplace_back(title, place_of(other));
      }
    }
  };
  add(arriving_, "caused by", false);
  add(leaving_, "causes", true);
}

DetailLines ImportedLanes::details(std::size_t row, const LaneBox& box) const {
  const Source& source = sources_[row];
  const ImportedLane& lane = lane_of(source);
  std::string where = fmt::format("{}, {}", rows_[row].group, title_of(trace_, lane));
  if (lane.process_label != 0) {
    where += fmt::format(", {}", trace_.names.text(lane.process_label));
  }
  DetailLines lines{{"where", where}};
  if (box.item == kNoItem) {
    lines.emplace_back("operations", grouped(box.count));
    lines.emplace_back("from", exact(box.begin));
    lines.emplace_back("busy", exact(box.busy));
    lines.emplace_back("mostly", std::string(name_of(box.paint)));
    return lines;
  }
  const ImportedSpan& span = lane.spans[box.item - source.first_item];
  lines.emplace_back("what", trace_.names.text(span.name));
  if (span.category != 0) {
    lines.emplace_back("category", trace_.names.text(span.category));
  }
  lines.emplace_back("started", exact(span.begin));
  lines.emplace_back("ended", exact(span.end));
  lines.emplace_back("ran for", exact(span.end - span.begin));
  add_collective(lines, span);
  add_arrows(lines, box.item);
  return lines;
}

}  // namespace lockstep::view
