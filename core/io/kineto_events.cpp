#include "core/io/kineto_events.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "core/io/json_stream.h"
#include "core/io/kineto_kinds.h"
#include "core/names.h"

namespace lockstep {
namespace {

constexpr std::string_view kComponent = "trace import";
/// Sums of a base, a time and a length stay within 64 bits.
constexpr Nanoseconds kFarthest = Nanoseconds{1} << 60;
constexpr Nanoseconds kLatestBase = Nanoseconds{1} << 61;
constexpr std::size_t kLongestName = 1000;
constexpr std::size_t kMostNameBytes = std::size_t{256} << 20;
constexpr std::int64_t kMostRanks = 1 << 24;

/// What one event says.
struct Event {
  char phase = '\0';
  NameId name = 0;
  NameId category = 0;
  std::optional<Nanoseconds> time;
  std::optional<Nanoseconds> duration;
  EventId pid = 0;
  EventId tid = 0;
  std::optional<EventId> id;
  bool collective = false;
  ImportedCollective about;
  NameId label = 0;  ///< args.name or args.labels
  std::optional<std::int64_t> sort;
};

enum class Key : std::uint8_t {
  kPhase,
  kName,
  kCategory,
  kTime,
  kDuration,
  kPid,
  kTid,
  kId,
  kArguments,
  kOther
};

constexpr std::pair<std::string_view, Key> kKeys[] = {{"ph", Key::kPhase},
                                                      {"ts", Key::kTime},
                                                      {"cat", Key::kCategory},
                                                      {"name", Key::kName},
                                                      {"pid", Key::kPid},
                                                      {"tid", Key::kTid},
                                                      {"dur", Key::kDuration},
                                                      {"args", Key::kArguments},
                                                      {"id", Key::kId}};

Key key_of(std::string_view text) {
  for (const auto& [name, key] : kKeys) {
    if (text == name) {
      return key;
    }
  }
  return Key::kOther;
}

std::optional<std::int64_t> whole(std::string_view text, int base = 10) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const bool all = error == std::errc() && end == text.data() + text.size() && !text.empty();
  return all ? std::optional(value) : std::nullopt;
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t more = byte < 0x80   ? 0
                             : byte < 0xC2 ? 9
                             : byte < 0xE0 ? 1
                             : byte < 0xF0 ? 2
                                           : 3;
    if (byte >= 0xF5 || i + more >= text.size()) {
      return false;
    }
    for (std::size_t k = 0; k < more; ++k) {
      if ((static_cast<unsigned char>(text[++i]) & 0xC0U) != 0x80) {
        return false;
      }
    }
  }
  return true;
}

class EventReader {
 public:
  EventReader(ByteSource& source, std::string_view name, ImportedTrace& trace)
      : json_(source, name, kComponent), trace_(trace) {}

  KinetoEvents run() {
    const Kind kind = json_.kind();
    if (kind == Kind::kEnd) {
      json_.refuse("the file is empty");
    }
    if (kind == Kind::kArray) {
      read_bare_array();
    } else {
      read_object();
    }
    if (json_.kind() != Kind::kEnd) {
      json_.refuse("more behind the end of the trace");
    }
    return std::move(events_);
  }

 private:
  using Kind = JsonStream::Kind;

  void read_object() {
    bool found = false;
    json_.begin_object();
    while (json_.next_member()) {
      const std::string_view key = json_.key();
      if (key == "traceEvents") {
        found = true;
        json_.begin_array();
        while (json_.next_element()) {
          read_event();
        }
      } else if (key == "distributedInfo") {
        read_distributed_info();
      } else if (key == "deviceProperties") {
        read_devices();
      } else if (key == "baseTimeNanoseconds") {
        const std::optional<std::int64_t> base = integer();
        if (!base || *base < 0 || *base > kLatestBase) {
          json_.refuse("baseTimeNanoseconds is no number of nanoseconds");
        }
        events_.base = *base;
      } else {
        json_.skip();
      }
    }
    if (!found) {
      json_.refuse("no traceEvents: this is not a Chrome or Kineto trace");
    }
  }

  void read_bare_array() {
    json_.begin_array();
    while (true) {
      if (json_.only_commas_left()) {
        events_.unclosed_array = true;
        return;
      }
      if (!json_.next_element()) {
        return;
      }
      read_event();
    }
  }

  void read_distributed_info() {
    if (json_.kind() != Kind::kObject) {
      json_.skip();
      return;
    }
    json_.begin_object();
    while (json_.next_member()) {
      const bool rank = json_.key() == "rank";
      if (rank || json_.key() == "world_size") {
        const std::int64_t at = json_.next_offset();
        const std::optional<std::int64_t> value = integer();
        if (!value || *value < 0 || *value > kMostRanks) {
          json_.refuse_at(at, "distributedInfo: no rank and no number of ranks");
        }
        (rank ? events_.rank : events_.world_size) = static_cast<int>(*value);
      } else if (json_.key() == "backend") {
        events_.backend = text();
      } else {
        json_.skip();
      }
    }
  }

  void read_devices() {
    if (json_.kind() != Kind::kArray) {
      json_.skip();
      return;
    }
    json_.begin_array();
    while (json_.next_element()) {
      if (json_.kind() != Kind::kObject) {
        json_.skip();
        continue;
      }
      json_.begin_object();
      while (json_.next_member()) {
        if (json_.key() == "name" && events_.device == 0) {
          events_.device = text();
        } else {
          json_.skip();
        }
      }
    }
  }

  // Values ------------------------------------------------------------------------------------

  /// A number or a string, as text; of other values an empty one.
  std::string_view scalar() {
    switch (json_.kind()) {
      case Kind::kString:
        return json_.string();
      case Kind::kNumber:
        return json_.number();
      default:
        json_.skip();
        return {};
    }
  }
  std::optional<std::int64_t> integer() { return whole(scalar()); }

  NameId text() {
    const std::string_view value = scalar();
    const bool plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < '\x7f'; });
    const NameId id = plain && value.size() <= kLongestName ? trace_.names.intern(value)
                                                            : trace_.names.intern(cleaned(value));
    if (trace_.names.bytes() > kMostNameBytes) {
      json_.refuse(fmt::format("names of more than {} bytes", kMostNameBytes));
    }
    return id;
  }

  /// Without control bytes and at most kLongestName long; not UTF-8 is shown as \xNN.
  static std::string cleaned(std::string_view value) {
    if (!is_utf8(value)) {
      return printable(value, kLongestName);
    }
    std::string result(value.substr(0, kLongestName));
    while (!is_utf8(result)) {
      result.pop_back();  // the cut went through a character
    }
    for (char& c : result) {
      c = (c >= 0 && c < ' ') || c == '\x7f' ? ' ' : c;
    }
    return result;
  }

  EventId id(bool hexadecimal) {
    const bool quoted = json_.kind() == Kind::kString;
    std::string_view value = scalar();
    if (hexadecimal && quoted) {
      value = value.substr(value.substr(0, 2) == "0x" ? 2 : 0);
    }
    if (const auto number = whole(value, hexadecimal && quoted ? 16 : 10);
        number && *number > kNamedIds + INT64_C(0x100000000)) {
      return *number;
    }
    if (!quoted) {
      const std::optional<Nanoseconds> thousandths = nanoseconds_of(value);
      return thousandths ? *thousandths / 1000 : 0;
    }
    return kNamedIds + trace_.names.intern(cleaned(value));
  }

  Nanoseconds time(std::string_view what) {
    const std::int64_t at = json_.next_offset();
    const std::string_view value = scalar();
    const std::optional<Nanoseconds> result = nanoseconds_of(value);
    if (!result) {
      json_.refuse_at(at,
                      fmt::format("{} is {}, not a time in microseconds", what, in_quotes(value)));
    }
    return *result;
  }

  // Events ------------------------------------------------------------------------------------

  void read_event() {
    const std::int64_t at = json_.next_offset();
    if (json_.kind() != Kind::kObject) {
      json_.refuse("an event that is no object");
    }
    event_ = Event();
    json_.begin_object();
    while (json_.next_member()) {
      read_field(key_of(json_.key()));
    }
    handle(at);
  }

  void read_field(Key key) {
    switch (key) {
      case Key::kPhase: {
        const std::string_view phase = json_.string();
        event_.phase = phase.empty() ? '\0' : phase[0];
        return;
      }
      case Key::kName:
        event_.name = text();
        return;
      case Key::kCategory:
        event_.category = text();
        return;
      case Key::kTime:
        event_.time = time("ts");
        return;
      case Key::kDuration:
        event_.duration = time("dur");
        return;
      case Key::kPid:
        event_.pid = id(false);
        return;
      case Key::kTid:
        event_.tid = id(false);
        return;
      case Key::kId:
        event_.id = id(true);
        return;
      case Key::kArguments:
        read_arguments();
        return;
      case Key::kOther:
        json_.skip();
    }
  }

  void read_arguments() {
    if (json_.kind() != Kind::kObject) {
      json_.skip();
      return;
    }
    json_.begin_object();
    while (json_.next_member()) {
      read_argument(json_.key());
    }
  }

  /// Keys are those of PyTorch's ParamCommsUtils and libkineto's output_json.
  void read_argument(std::string_view key) {
    ImportedCollective& about = event_.about;
    if (key == "Collective name") {
      const std::string_view kind = collective_kind(scalar_text());
      about.kind = trace_.names.intern(kind.empty() ? std::string_view(scalar_) : kind);
      event_.collective = true;
    } else if (key == "In msg nelems") {
      about.in_elements = integer();
    } else if (key == "Out msg nelems") {
      about.out_elements = integer();
    } else if (key == "Group size") {
      about.group_size = integer();
    } else if (key == "Seq") {
      about.sequence = integer();
    } else if (key == "dtype") {
      about.dtype = text();
    } else if (key == "Process Group Name") {
      about.group = text();
    } else if (key == "Process Group Description") {
      about.group_description = text();
    } else if (key == "Process Group Ranks") {
      about.ranks = text();
    } else if (key == "name" || key == "labels") {
      event_.label = text();
    } else if (key == "sort_index") {
      event_.sort = integer();
    } else {
      json_.skip();
    }
  }

  std::string_view scalar_text() {
    scalar_ = cleaned(scalar());
    return scalar_;
  }

  void handle(std::int64_t at) {
    switch (event_.phase) {
      case 'X':
        require(event_.time && event_.duration, at, "an X event without ts or dur");
        add_span();
        return;
      case 'B':
      case 'E':
        require(event_.time.has_value(), at, "a B or E event without ts");
        lanes()[lane()].marks.push_back(
            {*event_.time, event_.name, event_.category, event_.phase == 'B'});
        return;
      case 's':
      case 't':
      case 'f':
        require(event_.time && event_.id, at, "a flow event without ts or id");
        events_.flows.push_back(
            {event_.name, event_.category, *event_.id, *event_.time, lane(), event_.phase});
        return;
      case 'M':
        add_metadata();
        return;
      case '\0':
        json_.refuse_at(at, "an event without ph");
      default:
        return;  // counters, instants and asynchronous events have no place on a lane
    }
  }

  void require(bool holds, std::int64_t at, std::string_view what) const {
    if (!holds) {
      json_.refuse_at(at, what);
    }
  }

  void add_span() {
    ImportedSpan span;
    events_.negative += *event_.duration < 0 ? 1 : 0;
    span.begin = *event_.time;
    span.end = span.begin + std::max<Nanoseconds>(0, *event_.duration);
    span.name = event_.name;
    span.category = event_.category;
    if (event_.collective) {
      span.collective = add_collective(event_.about);
    }
    lanes()[lane()].spans.push_back(span);
  }

  std::int32_t add_collective(ImportedCollective about) {
    const std::optional<std::int64_t> size = dtype_bytes(trace_.names.text(about.dtype));
    const std::int64_t elements =
        std::max(about.in_elements.value_or(0), about.out_elements.value_or(0));
    std::int64_t bytes = 0;
    if (size && (about.in_elements || about.out_elements) &&
        !__builtin_mul_overflow(*size, elements, &bytes)) {
      about.bytes = bytes;
    }
    trace_.collectives.push_back(about);
    return static_cast<std::int32_t>(trace_.collectives.size() - 1);
  }

  void add_metadata() {
    const std::string& name = trace_.names.text(event_.name);
    if (name == "process_name") {
      events_.processes[event_.pid].name = event_.label;
    } else if (name == "process_labels") {
      events_.processes[event_.pid].label = event_.label;
    } else if (name == "process_sort_index" && event_.sort) {
      events_.processes[event_.pid].sort = *event_.sort;
      events_.processes[event_.pid].sorted = true;
    } else if (name == "thread_name") {
      lanes()[lane()].name = event_.label;
    } else if (name == "thread_sort_index" && event_.sort) {
      KinetoLane& it = lanes()[lane()];
      it.sort = *event_.sort;
      it.sorted = true;
    }
  }

  std::vector<KinetoLane>& lanes() { return events_.lanes; }

  /// Neighbours in the file are often of one thread.
  std::uint32_t lane() {
    const std::pair<EventId, EventId> key(event_.pid, event_.tid);
    if (lanes().empty() || key != last_key_) {
      const auto number = static_cast<std::uint32_t>(lanes().size());
      const auto [found, fresh] = lane_numbers_.emplace(key, number);
      if (fresh) {
        KinetoLane& it = lanes().emplace_back();
        it.pid = key.first;
        it.tid = key.second;
      }
      last_lane_ = found->second;
      last_key_ = key;
    }
    return last_lane_;
  }

  JsonStream json_;
  ImportedTrace& trace_;
  KinetoEvents events_;
  Event event_;
  std::string scalar_;
  std::map<std::pair<EventId, EventId>, std::uint32_t> lane_numbers_;
  std::pair<EventId, EventId> last_key_;
  std::uint32_t last_lane_ = 0;
};

std::optional<Nanoseconds> by_double(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end) * 1000;
  const bool all = end == copy.c_str() + copy.size() && !copy.empty();
  return all && std::abs(value) < static_cast<double>(kFarthest)
             ? std::optional<Nanoseconds>(std::llround(value))
             : std::nullopt;
}

}  // namespace

std::optional<Nanoseconds> nanoseconds_of(std::string_view microseconds) {
  constexpr std::size_t kMostDigits = 16;
  std::string_view text = microseconds;
  const bool negative = !text.empty() && text[0] == '-';
  text.remove_prefix(negative ? 1 : 0);
  const auto digit = [&](std::size_t i) {
    return i < text.size() && text[i] >= '0' && text[i] <= '9';
  };
  Nanoseconds value = 0;
  std::size_t at = 0;
  for (; digit(at) && at < kMostDigits; ++at) {
    value = value * 10 + (text[at] - '0');
  }
  if (value > kFarthest / 1000) {
    return by_double(microseconds);
  }
  const std::size_t whole_digits = at;
  value *= 1000;
  if (at < text.size() && text[at] == '.') {
    ++at;
    Nanoseconds unit = 100;
    for (; digit(at); ++at) {
      value += unit > 0 ? unit * (text[at] - '0') : 0;
      value += unit == 0 && at == whole_digits + 4 && text[at] >= '5' ? 1 : 0;
      unit /= 10;
    }
  }
  if (whole_digits == 0 || at != text.size()) {
    return by_double(microseconds);
  }
  if (value >= kFarthest) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

KinetoEvents read_kineto_events(ByteSource& source, std::string_view name, ImportedTrace& trace) {
  return EventReader(source, name, trace).run();
}

}  // namespace lockstep
