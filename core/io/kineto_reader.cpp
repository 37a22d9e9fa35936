#include "core/io/kineto_reader.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/byte_source.h"
#include "core/io/kineto_events.h"
#include "core/io/kineto_lanes.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr std::string_view kComponent = "trace import";
constexpr std::size_t kShownPath = 200;
constexpr std::size_t kMostFiles = 100'000;

void add_source(ByteSource& source, std::string_view name, ImportedTrace& trace) {
  add_kineto_ranks(read_kineto_events(source, name, trace), name, trace);
}

bool ends(std::string_view text, std::string_view with) {
  return text.size() >= with.size() && text.substr(text.size() - with.size()) == with;
}

std::vector<std::filesystem::path> files_of_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  std::vector<std::filesystem::path> kineto;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), last; !error && it != last;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if ((ends(name, ".json") || ends(name, ".json.gz")) && all.size() < kMostFiles) {
      all.push_back(it->path());
      if (ends(name, ".pt.trace.json") || ends(name, ".pt.trace.json.gz")) {
        kineto.push_back(it->path());
      }
    }
  }
  std::vector<std::filesystem::path>& files = kineto.empty() ? all : kineto;
  if (error || files.empty()) {
    throw BadInputError(kComponent,
                        fmt::format("{}: {}",
                                    printable(folder.string(), kShownPath),
                                    error ? error.message() : "no *.json and no *.json.gz in it"));
  }
  std::sort(files.begin(), files.end());
  return files;
}

int sort_rank(const ImportedRank& rank) {
  return rank.rank.value_or(std::numeric_limits<int>::max());
}

/// Ranks ascending; arrows follow them.
void order_ranks(ImportedTrace& trace) {
  std::vector<std::size_t> order(trace.ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return sort_rank(trace.ranks[a]) < sort_rank(trace.ranks[b]);
  });
  std::vector<ImportedRank> ranks;
  std::vector<std::int32_t> place(order.size());
  for (const std::size_t number : order) {
    place[number] = static_cast<std::int32_t>(ranks.size());
    ranks.push_back(std::move(trace.ranks[number]));
  }
  trace.ranks = std::move(ranks);
  for (ImportedFlow& flow : trace.flows) {
    for (ImportedFlowEnd* end : {&flow.from, &flow.to}) {
      end->rank = end->rank < 0 ? -1 : place[static_cast<std::size_t>(end->rank)];
    }
  }
}

void refuse_equal_ranks(const ImportedTrace& trace) {
  for (std::size_t i = 1; i < trace.ranks.size(); ++i) {
    const ImportedRank& a = trace.ranks[i - 1];
    const ImportedRank& b = trace.ranks[i];
    if (a.rank && a.rank == b.rank) {
      throw BadInputError(kComponent,
                          fmt::format("{} and {} are both of rank {}",
                                      printable(a.file, kShownPath),
                                      printable(b.file, kShownPath),
                                      *a.rank));
    }
  }
}

/// Time 0 becomes the first span's begin.
void set_origin(ImportedTrace& trace) {
  std::optional<Nanoseconds> first;
  for (const ImportedRank& rank : trace.ranks) {
    for (const ImportedLane& lane : rank.lanes) {
      const Nanoseconds begin = lane.spans.front().begin;
      first = std::min(first.value_or(begin), begin);
    }
  }
  trace.origin = first.value_or(0);
  for (ImportedRank& rank : trace.ranks) {
    for (ImportedLane& lane : rank.lanes) {
      for (ImportedSpan& span : lane.spans) {
        span.begin -= trace.origin;
        span.end -= trace.origin;
        trace.end = std::max(trace.end, span.end);
      }
    }
  }
  for (ImportedFlow& flow : trace.flows) {
    flow.from.time -= trace.origin;
    flow.to.time -= trace.origin;
  }
}

void finish(ImportedTrace& trace) {
  order_ranks(trace);
  refuse_equal_ranks(trace);
  set_origin(trace);
}

/// Calls the stop check with every piece.
class CheckedSource : public ByteSource {
 public:
  CheckedSource(ByteSource& source, const StopCheck& stop_check)
      : source_(source), stop_check_(stop_check) {}
  std::size_t read(char* into, std::size_t size) override {
    check_stop(stop_check_);
    return source_.read(into, size);
  }

 private:
  ByteSource& source_;
  const StopCheck& stop_check_;
};

}  // namespace

ImportedTrace import_kineto(const std::vector<std::filesystem::path>& paths,
                            const StopCheck& stop_check) {
  ImportedTrace trace;
  std::vector<std::filesystem::path> files;
  for (const std::filesystem::path& path : paths) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      const std::vector<std::filesystem::path> inside = files_of_folder(path);
      files.insert(files.end(), inside.begin(), inside.end());
    } else {
      files.push_back(path);
    }
  }
  for (const std::filesystem::path& file : files) {
    const std::unique_ptr<ByteSource> source = file_source(file, kComponent);
    CheckedSource checked(*source, stop_check);
    add_source(checked, file.string(), trace);
  }
  finish(trace);
  return trace;
}

ImportedTrace import_kineto_text(std::string_view text, std::string_view name) {
  ImportedTrace trace;
  const std::unique_ptr<ByteSource> source = text_source(text);
  add_source(*source, name, trace);
  finish(trace);
  return trace;
}

}  // namespace lockstep
