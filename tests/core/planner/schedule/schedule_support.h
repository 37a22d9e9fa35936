// What the schedule tests share: random legal requests, rows as text, and PyTorch's golden tables.
#pragma once

#include <cstdint>
#include <cstdio>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/planner/schedule/schedule.h"
#include "tests/support/golden.h"

namespace lockstep::test {

inline std::vector<std::string> row_texts(const std::vector<Action>& order) {
  std::vector<std::string> texts;
  for (const Action& action : order) {
    texts.push_back(action_text(action));
  }
  return texts;
}

inline std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

/// "0F0 0F1 . 2F0" to its actions, idle cells (dots) left out.
inline std::vector<std::string> printed_row(const std::string& text) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(text, ' ')) {
    if (cell != ".") {
      cells.push_back(cell);
    }
  }
  return cells;
}

inline std::string describe(const ScheduleRequest& request) {
  return std::string(name_of(request.kind)) + " P=" + std::to_string(request.pipeline_degree) +
         " V=" + std::to_string(request.chunks) + " M=" + std::to_string(request.microbatches);
}

inline const std::vector<ScheduleKind>& all_schedule_kinds() {
  static const std::vector<ScheduleKind> kinds = {ScheduleKind::kGPipe,
                                                  ScheduleKind::k1F1B,
                                                  ScheduleKind::kInterleaved,
                                                  ScheduleKind::kLoopedBfs,
                                                  ScheduleKind::kZbH1,
                                                  ScheduleKind::kInterleavedZb,
                                                  ScheduleKind::kZbV};
  return kinds;
}

/// All legal requests of one kind with P, V and M up to the given numbers.
inline std::vector<ScheduleRequest> legal_requests(ScheduleKind kind,
                                                   std::int32_t degrees,
                                                   std::int32_t chunks,
                                                   std::int32_t microbatches) {
  std::vector<ScheduleRequest> requests;
  for (std::int32_t p = 1; p <= degrees; ++p) {
    for (std::int32_t v = 1; v <= chunks; ++v) {
      for (std::int32_t m = 1; m <= microbatches; ++m) {
        const ScheduleRequest request{kind, p, v, m};
        if (problems(request).empty()) {
          requests.push_back(request);
        }
      }
    }
  }
  return requests;
}

/// A random legal request: P up to 12, V up to 4, M up to 40.
inline ScheduleRequest random_request(std::mt19937_64& random) {
  const auto up_to = [&random](std::int32_t limit) {
    return 1 + static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(limit));
  };
  while (true) {
    const auto kind = static_cast<ScheduleKind>(up_to(kScheduleKindCount) - 1);
    const ScheduleRequest request{kind, up_to(12), up_to(4), up_to(40)};
    if (problems(request).empty()) {
      return request;
    }
  }
}

/// One table of a golden file: "# P=4 V=2 M=8 comms" and then a line per rank.
struct GoldenTable {
  std::int32_t pipeline_degree = 0;
  std::int32_t chunks = 0;
  std::int32_t microbatches = 0;
  bool with_communication = false;
  std::vector<std::vector<std::string>> rows;

  std::string csv() const {
    std::string text;
    for (const std::vector<std::string>& row : rows) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        text += (i == 0 ? "" : ",") + row[i];
      }
      text += "\n";
    }
    return text;
  }
};

inline std::vector<GoldenTable> read_golden_tables(const std::string& name) {
  std::vector<GoldenTable> tables;
  for (const std::string& line : read_golden(name).lines) {
    if (line.rfind("# P=", 0) == 0) {
      GoldenTable table;
      char format[16] = "";
      if (std::sscanf(line.c_str(),
                      "# P=%d V=%d M=%d %15s",
                      &table.pipeline_degree,
                      &table.chunks,
                      &table.microbatches,
                      format) != 4) {
        throw std::runtime_error(name + ": cannot read the heading " + line);
      }
      table.with_communication = std::string(format) == "comms";
      tables.push_back(table);
    } else {
      tables.back().rows.push_back(split(line, ','));
    }
  }
  return tables;
}

}  // namespace lockstep::test
