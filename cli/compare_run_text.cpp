// Tables and JSON of compare --run.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/compare_run.h"
#include "core/io/json_writer.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", seconds * 1e3);
}

std::string percent(double part) {
  return fmt::format("{:+.1f} %", part * 100);
}

std::string times_table(const std::vector<TimesSum>& sums, const char* title) {
  TextTable table({{title},
                   {"count", Align::kRight},
                   {"predicted ms", Align::kRight},
                   {"measured ms", Align::kRight},
                   {"error", Align::kRight}});
  for (const TimesSum& sum : sums) {
    table.add({sum.name,
               fmt::format("{:.4g}", sum.operations),
               milliseconds(sum.predicted_s),
               milliseconds(sum.measured_s),
               percent(relative_error(sum.predicted_s, sum.measured_s))});
  }
  return table.text("  ");
}

std::string memory_table(const ComparedRun& run) {
  TextTable table({{fmt::format("memory of rank {}", run.worst_rank)},
                   {"planned", Align::kRight},
                   {"measured", Align::kRight}});
  for (std::size_t i = 0; i < run.planned.size(); ++i) {
    if (run.planned[i] != 0 || run.measured[i] != 0) {
      table.add({std::string(name_of(static_cast<Category>(i))),
                 bytes_text(run.planned[i]),
                 bytes_text(run.measured[i])});
    }
  }
  table.add({"all", bytes_text(total(run.planned)), bytes_text(total(run.measured))});
  return table.text("  ");
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.empty()           ? 0
         : values.size() % 2 == 1 ? values[half]
                                  : (values[half - 1] + values[half]) / 2;
}

void write_memory(JsonWriter& writer, const ComparedRun& run) {
  writer.begin_object("memory");
  for (std::size_t i = 0; i < run.planned.size(); ++i) {
    writer.begin_object(std::string(name_of(static_cast<Category>(i))).c_str());
    writer.field("planned", run.planned[i]);
    writer.field("measured", run.measured[i]);
    writer.end_object();
  }
  writer.end_object();
  writer.field("memory_rank", run.worst_rank);
  writer.field("memory_matches", run.memory_matches);
}

void write_sums(JsonWriter& writer, const char* key, const std::vector<TimesSum>& sums) {
  writer.begin_array(key);
  for (const TimesSum& sum : sums) {
    writer.begin_object();
    writer.field("name", sum.name);
    writer.field("operations", sum.operations);
    writer.field("predicted_s", sum.predicted_s);
    writer.field("measured_s", sum.measured_s);
    writer.end_object();
  }
  writer.end_array();
}

void write_run(JsonWriter& writer, const ComparedRun& run) {
  if (!run.words.empty()) {
    writer.field("strategy", run.words);
  }
  if (!run.refused.empty()) {
    writer.field("refused", run.refused);
    return;
  }
  writer.field("ranks", run.ranks);
  writer.begin_object("step_time");
  writer.field("predicted_s", run.times.predicted_s);
  writer.field("measured_s", run.times.measured_s);
  writer.field("error", run.times.error());
  writer.end_object();
  writer.field("steps", static_cast<std::int64_t>(run.step_seconds.size()));
  writer.field("collectives_match", run.transfer_difference.empty());
  if (!run.transfer_difference.empty()) {
    writer.field("collectives_difference", run.transfer_difference);
  }
  write_memory(writer, run);
  write_sums(writer, "families", run.times.families);
  write_sums(writer, "kinds", run.times.kinds);
  writer.begin_array("operations");
  for (const OperationTimes& times : run.times.operations) {
    writer.begin_object();
    writer.field("rank", static_cast<std::int64_t>(times.rank));
    writer.field("index", static_cast<std::int64_t>(times.index));
    writer.field("kind", times.kind);
    writer.field("predicted_s", times.predicted_s);
    writer.field("measured_s", times.measured_s);
    writer.end_object();
  }
  writer.end_array();
}

}  // namespace

std::string run_text(const ComparedRun& run) {
  const auto [least, most] = std::minmax_element(run.step_seconds.begin(), run.step_seconds.end());
  std::string text =
      fmt::format("step: predicted {} ms, measured {} ms (median of {} steps, {} to {}): {}\n\n",
                  milliseconds(run.times.predicted_s),
                  milliseconds(run.times.measured_s),
                  run.step_seconds.size(),
                  milliseconds(*least),
                  milliseconds(*most),
                  percent(run.times.error()));
  text += times_table(run.times.families, "work of a rank") + "\n";
  text += times_table(run.times.kinds, "operations") + "\n";
  text += memory_table(run);
  text += run.memory_matches ? "  memory: as planned on every rank\n"
                             : "  memory: NOT as planned on every rank\n";
  text += run.transfer_difference.empty()
              ? "  collectives and messages: as planned on every rank\n"
              : "  collectives and messages: NOT as planned: " + run.transfer_difference + "\n";
  return text;
}

std::string runs_table(const std::vector<ComparedRun>& runs) {
  TextTable table({{"strategy"},
                   {"ranks", Align::kRight},
                   {"predicted ms", Align::kRight},
                   {"measured ms", Align::kRight},
                   {"error", Align::kRight},
                   {"memory"},
                   {"collectives"}});
  std::string refused;
  std::vector<double> errors;
  for (const ComparedRun& run : runs) {
    if (!run.refused.empty()) {
      table.add({run.words, "-", "-", "-", "-", "-", "-"});
      refused += fmt::format("  {}: {}\n", run.words, run.refused);
      continue;
    }
    errors.push_back(std::abs(run.times.error()));
    table.add({run.words,
               std::to_string(run.ranks),
               milliseconds(run.times.predicted_s),
               milliseconds(run.times.measured_s),
               percent(run.times.error()),
               run.memory_matches ? "as planned" : "differs",
               run.transfer_difference.empty() ? "as planned" : "differ"});
  }
  std::string text = table.text("  ") + refused;
  if (!errors.empty()) {
    text += fmt::format("\nmedian of the errors: {:.1f} %\n", median(errors) * 100);
  }
  return text;
}

std::string runs_json(const std::vector<ComparedRun>& runs, bool one) {
  JsonWriter writer;
  writer.begin_object();
  writer.field("schema_version", 1);
  if (one) {
    write_run(writer, runs.front());
  } else {
    writer.begin_array("strategies");
    for (const ComparedRun& run : runs) {
      writer.begin_object();
      write_run(writer, run);
      writer.end_object();
    }
    writer.end_array();
  }
  writer.end_object();
  return writer.text();
}

}  // namespace lockstep::cli
