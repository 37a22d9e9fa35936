#include "core/io/trace_io.h"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>

#include <fmt/format.h>

#include "core/check.h"
#include "core/checksum.h"
#include "core/error.h"
#include "core/io/files.h"
#include "core/io/scenario_io.h"
#include "core/limits.h"
#include "core/plan_fingerprint.h"
#include "core/planner/planner.h"
#include "core/trace_index.h"

namespace lockstep {
namespace {

constexpr std::string_view kMagic = "LSTRACE\n";
constexpr std::size_t kHeader = 40;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kOptionsAt = 12;
constexpr std::size_t kSizeAt = 16;
constexpr std::size_t kChecksumAt = 24;
constexpr std::size_t kFingerprintAt = 32;
constexpr std::uint32_t kHasEvaluate = 1;
constexpr std::uint32_t kHasSave = 2;
/// Times beyond 36 years are nonsense, and differences of smaller ones fit.
constexpr Nanoseconds kMostTime = Nanoseconds{1} << 60;
/// A span takes at least one byte in each of six columns.
constexpr std::size_t kLeastSpan = 6;

void put(std::string& bytes, std::size_t at, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes[at + i] = static_cast<char>((value >> (8 * i)) & 0xffU);
  }
}

std::uint64_t get(std::string_view bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  }
  return value;
}

/// Of all that stands behind the header, and of the header's fields that decide how it is read.
std::uint64_t checksum_of_file(std::string_view bytes) {
  return checksum_of(bytes.substr(kHeader),
                     get(bytes, kVersionAt, 8) ^ get(bytes, kFingerprintAt, 8));
}

// ---- writing -----------------------------------------------------------------------------------

class Writer {
 public:
  void number(std::uint64_t value) {
    while (value >= 0x80U) {
      bytes_ += static_cast<char>(value | 0x80U);
      value >>= 7U;
    }
    bytes_ += static_cast<char>(value);
  }
  /// Small numbers of either sign are short.
  void difference(std::int64_t a, std::int64_t b) {
    const auto value = static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
    number((value << 1U) ^ (0 - (value >> 63U)));
  }
  void byte(std::uint8_t value) { bytes_ += static_cast<char>(value); }
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  void raw(std::string_view value) { bytes_ += value; }
  void reserve(std::size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void write_ranks(Writer& out, const std::vector<std::int32_t>& ranks) {
  out.number(ranks.size());
  std::int64_t before = 0;
  for (const std::int32_t rank : ranks) {
    out.difference(rank, before);
    before = rank;
  }
}

void write_track(Writer& out, const TraceTrack& track) {
  out.number(static_cast<std::uint32_t>(track.class_index));
  write_ranks(out, track.ranks);
  out.number(track.spans.size());
  out.reserve(12 * track.spans.size());
  std::int64_t before = -1;
  for (const Span& span : track.spans) {
    out.difference(span.operation, before);
    before = span.operation;
  }
  for (const Span& span : track.spans) {
    out.byte(static_cast<std::uint8_t>(span.state));
  }
  before = 0;
  for (const Span& span : track.spans) {
    out.difference(span.issued, before);
    before = span.issued;
  }
  for (const Span& span : track.spans) {
    out.difference(span.arrived, span.issued);
  }
  for (const Span& span : track.spans) {
    out.difference(span.started, span.arrived);
  }
  for (const Span& span : track.spans) {
    out.difference(span.ended, span.started);
  }
}

void write_trace(Writer& out, const Trace& trace) {
  out.byte(static_cast<std::uint8_t>(trace.source));
  out.number(trace.facts.size());
  for (const auto& [name, value] : trace.facts) {
    out.text(name);
    out.text(value);
  }
  out.number(trace.stalls.size());
  for (const Stall& stall : trace.stalls) {
    out.number(static_cast<std::uint32_t>(stall.rank));
    out.number(stall.operation);
    out.difference(stall.since, 0);
    write_ranks(out, stall.missing);
  }
  out.number(trace.steps.size());
  for (const TraceStep& step : trace.steps) {
    out.number(static_cast<std::uint32_t>(step.section));
    out.number(static_cast<std::uint32_t>(step.iteration));
    out.difference(step.begin, 0);
    out.difference(step.end, step.begin);
    out.number(step.tracks.size());
    for (const TraceTrack& track : step.tracks) {
      write_track(out, track);
    }
  }
}

// ---- reading -----------------------------------------------------------------------------------

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view source) : bytes_(bytes), source_(source) {}

  [[noreturn]] void refuse(std::string_view what) const {
    throw BadInputError("trace", fmt::format("{}: corrupted at byte {}: {}", source_, at_, what));
  }
  std::size_t left() const { return bytes_.size() - at_; }
  bool ended() const { return left() == 0; }

  std::uint8_t byte() {
    if (ended()) {
      refuse("it ends inside a value");
    }
    return static_cast<std::uint8_t>(bytes_[at_++]);
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t next = byte();
      value |= static_cast<std::uint64_t>(next & 0x7fU) << shift;
      if (next < 0x80U) {
        return value;
      }
    }
    refuse("a number longer than 64 bits");
  }
  std::int64_t difference(std::int64_t from) {
    const std::uint64_t coded = number();
    const std::uint64_t value = (coded >> 1U) ^ (0 - (coded & 1U));
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + value);
  }
  std::int32_t index(std::string_view what) {
    const std::uint64_t value = number();
    if (value > std::numeric_limits<std::int32_t>::max()) {
      refuse(what);
    }
    return static_cast<std::int32_t>(value);
  }
  /// A length whose elements take at least `each` bytes.
  std::size_t length(std::size_t each) {
    const std::uint64_t value = number();
    if (value > left() / each) {
      refuse("a list longer than the file");
    }
    return static_cast<std::size_t>(value);
  }
  std::string text() {
    const std::size_t size = length(1);
    const std::string_view found = bytes_.substr(at_, size);
    at_ += size;
    return std::string(found);
  }
  Nanoseconds time(Nanoseconds from) {
    const Nanoseconds value = difference(from);
    if (value < -kMostTime || value > kMostTime) {
      refuse("a time out of range");
    }
    return value;
  }
  void skip(std::size_t bytes) { at_ += bytes; }

 private:
  std::string_view bytes_;
  std::string_view source_;
  std::size_t at_ = 0;
};

std::vector<std::int32_t> read_ranks(Reader& in) {
  std::vector<std::int32_t> ranks(in.length(1));
  std::int64_t rank = 0;
  for (std::int32_t& it : ranks) {
    rank = in.difference(rank);
    if (rank < 0 || rank >= kMaxWorldSize) {
      in.refuse("a rank out of range");
    }
    it = static_cast<std::int32_t>(rank);
  }
  return ranks;
}

TraceTrack read_track(Reader& in) {
  TraceTrack track;
  track.class_index = in.index("a class out of range");
  track.ranks = read_ranks(in);
  track.spans.resize(in.length(kLeastSpan));
  std::int64_t operation = -1;
  for (Span& span : track.spans) {
    operation = in.difference(operation);
    if (operation < 0 || operation > std::numeric_limits<std::int32_t>::max()) {
      in.refuse("an operation out of range");
    }
    span.operation = static_cast<std::uint32_t>(operation);
  }
  for (Span& span : track.spans) {
    const std::uint8_t state = in.byte();
    if (state > static_cast<std::uint8_t>(SpanState::kPlanned)) {
      in.refuse("an unknown state of a span");
    }
    span.state = static_cast<SpanState>(state);
  }
  Nanoseconds before = 0;
  for (Span& span : track.spans) {
    before = span.issued = in.time(before);
  }
  for (Span& span : track.spans) {
    span.arrived = in.time(span.issued);
  }
  for (Span& span : track.spans) {
    span.started = in.time(span.arrived);
  }
  for (Span& span : track.spans) {
    span.ended = in.time(span.started);
  }
  return track;
}

void number_ranks(const Reader& in, TraceStep& step) {
  std::size_t count = 0;
  for (const TraceTrack& track : step.tracks) {
    count += track.ranks.size();
  }
  step.track_of_rank.assign(count, -1);
  for (std::size_t track = 0; track < step.tracks.size(); ++track) {
    for (const std::int32_t rank : step.tracks[track].ranks) {
      if (static_cast<std::size_t>(rank) >= count ||
          step.track_of_rank[static_cast<std::size_t>(rank)] >= 0) {
        in.refuse("a rank that is not in exactly one track");
      }
      step.track_of_rank[static_cast<std::size_t>(rank)] = static_cast<std::int32_t>(track);
    }
  }
}

TraceStep read_step(Reader& in) {
  TraceStep step;
  step.section = in.index("a section out of range");
  step.iteration = in.index("an iteration out of range");
  step.begin = in.time(0);
  step.end = in.time(step.begin);
  if (step.end < step.begin) {
    in.refuse("a step that ends before it begins");
  }
  step.tracks.resize(in.length(3));
  for (TraceTrack& track : step.tracks) {
    track = read_track(in);
  }
  number_ranks(in, step);
  return step;
}

Trace read_trace(Reader& in) {
  Trace trace;
  const std::uint8_t source = in.byte();
  if (source > static_cast<std::uint8_t>(TraceSource::kMeasured)) {
    in.refuse("an unknown source");
  }
  trace.source = static_cast<TraceSource>(source);
  trace.facts.resize(in.length(2));
  for (auto& [name, value] : trace.facts) {
    name = in.text();
    value = in.text();
  }
  trace.stalls.resize(in.length(4));
  for (Stall& stall : trace.stalls) {
    stall.rank = in.index("a rank out of range");
    stall.operation = static_cast<std::uint32_t>(in.index("an operation out of range"));
    stall.since = in.time(0);
    stall.missing = read_ranks(in);
  }
  const std::size_t steps = in.length(5);
  for (std::size_t step = 0; step < steps; ++step) {
    trace.steps.push_back(read_step(in));
  }
  return trace;
}

void check_header(std::string_view bytes, std::string_view source) {
  const auto refuse = [&](const std::string& what) {
    throw BadInputError("trace", fmt::format("{}: {}", source, what));
  };
  const std::string_view magic = bytes.substr(0, kMagic.size());
  if (magic.empty() || magic != kMagic.substr(0, magic.size())) {
    const bool foreign = !bytes.empty() && (bytes[0] == '{' || bytes[0] == '[' || bytes[0] == 0x1f);
    refuse(foreign ? "not a Lockstep trace; profiles in JSON are opened by lockstep-view"
                   : "not a Lockstep trace");
  }
  if (bytes.size() < kHeader) {
    refuse(fmt::format("truncated: {} bytes, not even a header", bytes.size()));
  }
  const std::uint64_t version = get(bytes, kVersionAt, 4);
  if (version > kTraceVersion) {
    refuse(fmt::format(
        "version {} is newer than this program, which reads up to {}", version, kTraceVersion));
  }
  if (version == 0) {
    refuse("corrupted: version 0");
  }
  const std::uint64_t size = get(bytes, kSizeAt, 8);
  if (bytes.size() - kHeader < size) {
    refuse(fmt::format("truncated: {} of {} bytes", bytes.size() - kHeader, size));
  }
  if (bytes.size() - kHeader > size) {
    refuse(fmt::format("corrupted: {} bytes too many", bytes.size() - kHeader - size));
  }
  if (get(bytes, kChecksumAt, 8) != checksum_of_file(bytes)) {
    refuse("corrupted: the checksum differs");
  }
}

std::string read_file(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream file(path, std::ios::binary);
  if (error || !file) {
    throw BadInputError(
        "trace",
        fmt::format("{}: cannot be read: {}",
                    path,
                    error ? error.message() : std::generic_category().message(errno)));
  }
  std::string bytes(size, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

}  // namespace

void seal_trace(std::string& bytes) {
  LOCKSTEP_CHECK(bytes.size() >= kHeader, "a trace file has a header");
  put(bytes, kSizeAt, bytes.size() - kHeader, 8);
  put(bytes, kChecksumAt, checksum_of_file(bytes), 8);
}

std::string encode_trace(const TraceFile& file) {
  Writer out;
  out.raw(kMagic);
  out.raw(std::string(kHeader - kMagic.size(), '\0'));
  out.text(file.scenario);
  write_trace(out, file.trace);
  std::string bytes = out.take();
  put(bytes, kVersionAt, kTraceVersion, 4);
  put(bytes, kOptionsAt, (file.evaluate ? kHasEvaluate : 0) | (file.save ? kHasSave : 0), 4);
  put(bytes, kFingerprintAt, file.fingerprint, 8);
  seal_trace(bytes);
  return bytes;
}

TraceFile decode_trace(std::string_view bytes, std::string_view source) {
  check_header(bytes, source);
  TraceFile file;
  const std::uint64_t options = get(bytes, kOptionsAt, 4);
  file.evaluate = (options & kHasEvaluate) != 0;
  file.save = (options & kHasSave) != 0;
  file.fingerprint = get(bytes, kFingerprintAt, 8);
  Reader in(bytes, source);
  in.skip(kHeader);
  file.scenario = in.text();
  file.trace = read_trace(in);
  if (!in.ended()) {
    in.refuse("more bytes than values");
  }
  return file;
}

void save_trace(const std::string& path,
                const Scenario& scenario,
                const Plan& plan,
                const Trace& trace) {
  TraceFile file;
  file.scenario = scenario_text(scenario);
  file.fingerprint = plan_fingerprint(plan);
  file.evaluate = plan.find(SectionKind::kEvaluate) != nullptr;
  file.save = plan.find(SectionKind::kSave) != nullptr;
  file.trace = trace;
  write_whole(path, {encode_trace(file)}, "trace");
}

LoadedTrace load_trace(const std::string& path, const StopCheck& stop_check) {
  TraceFile file = decode_trace(read_file(path), path);
  LoadedTrace loaded;
  loaded.scenario = resolved(parse_scenario(file.scenario, path));
  require_valid(loaded.scenario);
  loaded.plan = make_plan(loaded.scenario,
                          {.evaluate = file.evaluate, .save = file.save, .stop_check = stop_check});
  if (plan_fingerprint(loaded.plan) != file.fingerprint) {
    throw BadInputError(
        "trace",
        fmt::format("{}: its scenario gives another plan than the one that ran: it was made by "
                    "another version of Lockstep",
                    path));
  }
  loaded.trace = std::move(file.trace);
  for (const TraceStep& step : loaded.trace.steps) {
    check_stop(stop_check);
    check_trace(loaded.plan, step);
  }
  return loaded;
}

}  // namespace lockstep
