#include "tests/support/chrome_trace_checker.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <nlohmann/json.hpp>

namespace lockstep::test {
namespace {

using Json = nlohmann::json;
using Thread = std::pair<std::int64_t, std::int64_t>;
using FlowKey = std::tuple<std::string, std::string, std::string>;  ///< id, category, name

struct Slice {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

struct FlowEnd {
  Thread thread;
  std::int64_t time = 0;
};

class Checker {
 public:
  ChromeTraceFacts run(std::string_view text) {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      require(byte == '\n' || (byte >= 0x20 && byte < 0x7f), "a byte that is not printable ASCII");
    }
    const Json document = Json::parse(text, nullptr, false);
    if (document.is_discarded()) {
      require(false, "not JSON");
      return std::move(facts_);
    }
    const bool outer = document.is_object() && document.contains("traceEvents") &&
                       document["traceEvents"].is_array();
    require(outer || document.is_array(), "neither an array nor an object with traceEvents");
    if (outer || document.is_array()) {
      for (const Json& event : outer ? document["traceEvents"] : document) {
        check_event(event);
      }
      check_nesting();
      check_flows();
      check_names();
    }
    return std::move(facts_);
  }

 private:
  void require(bool holds, const std::string& problem) {
    if (!holds && facts_.problems.size() < 20) {
      facts_.problems.push_back(problem);
    }
  }

  /// Microseconds to whole nanoseconds; the importer multiplies by 1000.
  std::int64_t time_of(const Json& event, const char* key) {
    if (!event.contains(key) || !event[key].is_number()) {
      require(false, std::string("an event without a number for ") + key + ": " + event.dump());
      return 0;
    }
    const double value = event[key].get<double>();
    require(value >= 0, std::string("negative ") + key + ": " + event.dump());
    return std::llround(value * 1000);
  }

  std::int64_t id_of(const Json& event, const char* key) {
    if (!event.contains(key) || !event[key].is_number_integer()) {
      require(false, std::string("no whole ") + key + ": " + event.dump());
      return 0;
    }
    const auto value = event[key].get<std::int64_t>();
    require(value >= 0 && value <= 0xffffffffLL, std::string(key) + " is no uint32");
    return value;
  }

  void check_event(const Json& event) {
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string() ||
        !event.contains("name") || !event["name"].is_string()) {
      require(false, "an event without ph or name: " + event.dump());
      return;
    }
    require(!event["name"].get<std::string>().empty(), "an empty name");
    require(!event.contains("args") || event["args"].is_object(), "args that are no object");
    const Thread thread{id_of(event, "pid"), id_of(event, "tid")};
    require(thread.first == 0 || thread.second != 0, "tid 0 is rewritten to the pid");
    const std::string phase = event["ph"];
    if (phase == "M") {
      check_metadata(event, thread);
    } else if (phase == "X") {
      const std::int64_t begin = time_of(event, "ts");
      const std::int64_t duration = time_of(event, "dur");
      slices_[thread].push_back({begin, begin + duration});
      facts_.busy_ns[thread] += duration;
      ++facts_.slices;
    } else if (phase == "C") {
      check_counter(event, thread.first);
    } else if (phase == "s" || phase == "f") {
      check_flow(event, thread, phase == "s");
    } else {
      require(false, "an event of kind " + phase);
    }
  }

  void check_metadata(const Json& event, const Thread& thread) {
    const std::string kind = event["name"];
    const Json args = event.value("args", Json::object());
    if (kind == "process_name" || kind == "thread_name") {
      const bool named = args.contains("name") && args["name"].is_string();
      require(named, kind + " without a name");
      if (named) {
        const std::string name = args["name"];
        const bool fresh = kind == "process_name"
                               ? facts_.processes.emplace(thread.first, name).second
                               : facts_.threads.emplace(thread, name).second;
        require(fresh, kind + " twice");
      }
    } else if (kind == "process_sort_index" || kind == "thread_sort_index") {
      require(args.contains("sort_index") && args["sort_index"].is_number_integer(),
              kind + " without a whole sort_index");
    } else if (kind != "process_labels") {  // ignored, but what Kineto writes
      require(false, "metadata that the importer does not know: " + kind);
    }
  }

  void check_counter(const Json& event, std::int64_t pid) {
    time_of(event, "ts");
    const Json args = event.value("args", Json::object());
    require(!args.empty(), "a counter without values");
    for (const auto& [key, value] : args.items()) {
      require(value.is_number(), "a counter value that is no number");
      if (value.is_number()) {
        double& highest = facts_.highest_counter[{pid, key}];
        highest = std::max(highest, value.get<double>());
      }
    }
    ++facts_.counters;
  }

  void check_flow(const Json& event, const Thread& thread, bool starts) {
    require(event.contains("id") && event["id"].is_number_integer(), "a flow without a number id");
    require(event.contains("cat") && event["cat"].is_string(), "a flow without cat");
    require(starts || (event.contains("bp") && event["bp"] == "e"),
            "a flow end without bp e binds to the next slice");
    const FlowKey key{event.value("id", Json()).dump(), event.value("cat", ""), event["name"]};
    auto& ends = starts ? flow_starts_ : flow_ends_;
    require(ends.emplace(key, FlowEnd{thread, time_of(event, "ts")}).second,
            "two flow events of one kind and id: " + event.dump());
  }

  void check_nesting() {
    for (auto& [thread, slices] : slices_) {
      std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
      });
      std::vector<std::int64_t> open;
      for (const Slice& slice : slices) {
        while (!open.empty() && open.back() <= slice.begin) {
          open.pop_back();
        }
        require(open.empty() || slice.end <= open.back(),
                "slices overlap on thread " + std::to_string(thread.first) + "/" +
                    std::to_string(thread.second) + " at " + std::to_string(slice.begin) + " ns");
        open.push_back(slice.end);
      }
    }
  }

  bool in_slice(const FlowEnd& end) {
    for (const Slice& slice : slices_[end.thread]) {
      if (slice.begin <= end.time && end.time < slice.end) {
        return true;
      }
    }
    return false;
  }

  void check_flows() {
    for (const auto& [key, start] : flow_starts_) {
      const auto end = flow_ends_.find(key);
      require(end != flow_ends_.end(), "a flow that never ends: " + std::get<0>(key));
      require(in_slice(start), "a flow that starts outside any slice");
      if (end != flow_ends_.end()) {
        require(end->second.time >= start.time, "a flow that ends before it starts");
        ++facts_.flows;
      }
    }
    for (const auto& [key, end] : flow_ends_) {
      require(flow_starts_.count(key) != 0, "a flow that never starts: " + std::get<0>(key));
      require(in_slice(end), "a flow that ends outside any slice");
    }
  }

  void check_names() {
    for (const auto& [thread, slices] : slices_) {
      require(facts_.processes.count(thread.first) != 0, "a process without a name");
      require(facts_.threads.count(thread) != 0, "a thread without a name");
    }
  }

  ChromeTraceFacts facts_;
  std::map<Thread, std::vector<Slice>> slices_;
  std::map<FlowKey, FlowEnd> flow_starts_;
  std::map<FlowKey, FlowEnd> flow_ends_;
};

}  // namespace

ChromeTraceFacts check_chrome_trace(std::string_view json) {
  return Checker().run(json);
}

}  // namespace lockstep::test
