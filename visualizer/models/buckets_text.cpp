#include "visualizer/models/buckets_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

constexpr std::size_t kMostParameters = 24;
constexpr int kFewestColumns = 20;

/// Marks columns [begin, end) of a picture, at least one of them.
void mark(std::string& line, const TimeWindow& window, Nanoseconds begin, Nanoseconds end, char c) {
  const auto columns = static_cast<int>(line.size());
  const int first = column_of(window, columns, begin);
  const int last = std::max(first, column_of(window, columns, std::max(begin, end - 1)));
  std::fill(line.begin() + first, line.begin() + last + 1, c);
}

std::string head_text(const Buckets& buckets, bool utf8) {
  const BucketSummary& it = buckets.summary();
  std::string text = fmt::format("rank {}: {} parameters in {} buckets, {} {} over {} ({} ranks)\n",
                                 buckets.rank(),
                                 grouped(static_cast<std::int64_t>(buckets.parameters().size())),
                                 buckets.buckets().size(),
                                 it.reductions,
                                 it.kind,
                                 it.group,
                                 it.ranks);
  text += fmt::format("{} reduced, {} sent by this rank; in transfer {}, overlap {}, exposed {}",
                      bytes_text(it.tensor_bytes),
                      bytes_text(std::llround(it.sent_bytes)),
                      time_text(it.transfer, utf8),
                      percent_text(it.overlap()),
                      time_text(it.exposed, utf8));
  text += it.waiting > 0 ? fmt::format(", waiting {}\n", time_text(it.waiting, utf8)) : "\n";
  return text + fmt::format("after the last gradient ({}): {}\n",
                            time_text(it.tail.from - buckets.whole().from, utf8),
                            time_text(it.tail.length(), utf8));
}

std::string picture(const Buckets& buckets, const TextOptions& options) {
  const TimeWindow window = buckets.whole();
  std::vector<std::string> labels;
  std::size_t width = 0;
  for (std::size_t i = 0; i < buckets.buckets().size(); ++i) {
    const Bucket& bucket = buckets.buckets()[i];
    labels.push_back(fmt::format(
        "{:>3} {:>10} {:>4} tensors ", i, bytes_text(bucket.bytes), bucket.members.size()));
    width = std::max(width, labels.back().size());
  }
  const int columns =
      std::max(kFewestColumns, std::max(options.width, kNarrowestText) - static_cast<int>(width));
  std::vector<std::string> lines(labels.size(),
                                 std::string(static_cast<std::size_t>(columns), '.'));
  for (const BucketLaunch& it : buckets.launches()) {
    std::string& line = lines[static_cast<std::size_t>(it.bucket)];
    mark(line, window, it.first_filled, it.full, ':');
    if (it.started > it.full) {
      mark(line, window, it.full, it.started, '#');
    }
    if (it.started > it.arrived) {
      mark(line, window, it.arrived, it.started, '~');
    }
    mark(line, window, it.started, it.ended, '=');
  }
  std::string text = std::string(width, ' ') + axis_text(window, columns, options.utf8) + "\n";
  for (std::size_t i = 0; i < labels.size(); ++i) {
    text += fmt::format("{:<{}}{}\n", labels[i], width, lines[i]);
  }
  return text + ": filling  # full, not yet begun  ~ waiting for other ranks  = being reduced\n";
}

std::string launch_table(const Buckets& buckets, bool utf8) {
  TextTable table({{"bucket", Align::kRight},
                   {"cap", Align::kRight},
                   {"last gradient", Align::kRight},
                   {"full", Align::kRight},
                   {"started", Align::kRight},
                   {"ended", Align::kRight},
                   {"exposed", Align::kRight},
                   {"filled last by"}});
  const Nanoseconds begin = buckets.whole().from;
  for (const BucketLaunch& it : buckets.launches()) {
    const Bucket& bucket = buckets.buckets()[static_cast<std::size_t>(it.bucket)];
    const auto last = static_cast<std::size_t>(it.drops.back().parameter);
    table.add({std::to_string(it.bucket),
               bucket.cap_bytes ? bytes_text(*bucket.cap_bytes) : "-",
               time_text(it.drops.back().ready - begin, utf8),
               time_text(it.full - begin, utf8),
               time_text(it.started - begin, utf8),
               time_text(it.ended - begin, utf8),
               time_text(it.exposed, utf8),
               buckets.parameters()[last].name});
  }
  return table.text("  ");
}

std::string parameter_table(const Buckets& buckets) {
  TextTable table({{"parameter"}, {"bytes", Align::kRight}, {"bucket", Align::kRight}});
  const std::vector<BucketParameter>& all = buckets.parameters();
  for (std::size_t i = 0; i < std::min(all.size(), kMostParameters); ++i) {
    table.add({all[i].name, bytes_text(all[i].bytes), std::to_string(all[i].bucket)});
  }
  std::string text = table.text("  ");
  if (all.size() > kMostParameters) {
    text += fmt::format("  and {} more; --json has them all\n", all.size() - kMostParameters);
  }
  return text;
}

std::string state_text(const Buckets& buckets, Nanoseconds at, bool utf8) {
  TextTable table({{"bucket", Align::kRight}, {"state"}, {"filled", Align::kRight}});
  const std::vector<BucketState> states = buckets.state(at);
  for (std::size_t i = 0; i < states.size(); ++i) {
    table.add({std::to_string(i),
               std::string(name_of(states[i].phase)),
               fmt::format("{:.0f} %", states[i].filled * 100)});
  }
  return fmt::format("\nat {}:\n{}", time_text(at - buckets.whole().from, utf8), table.text("  "));
}

}  // namespace

std::string buckets_text(const Buckets& buckets,
                         std::optional<Nanoseconds> at,
                         const TextOptions& options) {
  if (!buckets.why_empty().empty()) {
    return fmt::format("rank {}: no buckets: {}\n", buckets.rank(), buckets.why_empty());
  }
  if (buckets.whole().length() <= 0) {
    return "nothing happened: the step is empty\n";
  }
  std::string text = head_text(buckets, options.utf8) + "\n" + picture(buckets, options) + "\n" +
                     launch_table(buckets, options.utf8) + "\n" + parameter_table(buckets);
  return at ? text + state_text(buckets, *at, options.utf8) : text;
}

}  // namespace lockstep::view
