#include "cli/validate_text.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "core/io/csv_reader.h"
#include "core/io/json_writer.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kRule =
    "Rows are selected by one rule: every core field is printed (shape, batch, degrees, sharding,\n"
    "precision; for step times also recompute and virtual stages), cp = ep = 1, precision fp32, "
    "tf32,\n"
    "bf16 or fp16, and all parameters are trained on the device. No constant was chosen by the "
    "name "
    "of\n"
    "a source or a model.\n";

std::string percent(double value) {
  return fmt::format("{:.1f} %", 100 * value);
}

std::string signed_percent(double value) {
  return fmt::format("{:+.1f} %", 100 * value);
}

/// Three significant digits with the metric's unit.
std::string value_text(sim::Metric metric, double value) {
  switch (metric) {
    case sim::Metric::kStepTime:
      return fmt::format("{:.4g} s", value);
    case sim::Metric::kTokensPerSecond:
      return fmt::format("{:.4g} /s", value);
    case sim::Metric::kPeakMemory:
      return fmt::format("{:.4g} GiB", value);
    case sim::Metric::kCollectiveTime:
      return fmt::format("{:.4g} us", 1e6 * value);
  }
  return "";
}

std::string groups_text(const char* title, const std::vector<sim::GroupStatistics>& groups) {
  TextTable table({{title},
                   {"rows", Align::kRight},
                   {"median", Align::kRight},
                   {"p90", Align::kRight},
                   {"bias", Align::kRight},
                   {"median of the rest", Align::kRight}});
  for (const sim::GroupStatistics& group : groups) {
    table.add({group.name,
               std::to_string(group.inside.rows),
               percent(group.inside.median),
               percent(group.inside.p90),
               signed_percent(group.inside.bias),
               group.rest.rows > 0 ? percent(group.rest.median) : ""});
  }
  return table.text("  ");
}

std::string worst_text(const sim::MetricSummary& summary) {
  TextTable table({{"furthest off"},
                   {"predicted", Align::kRight},
                   {"measured", Align::kRight},
                   {"error", Align::kRight},
                   {"hardware"},
                   {"regime"}});
  for (const sim::ValidatedRow* row : summary.worst) {
    table.add({row->id,
               value_text(row->metric, row->predicted),
               value_text(row->metric, row->measured),
               signed_percent(row->error),
               row->hardware,
               row->regime});
  }
  return table.text("  ");
}

std::string refused_text(const sim::ValidationReport& report, bool explain) {
  std::string text;
  if (explain) {
    TextTable table({{"refused"}, {"reason"}});
    for (const sim::RefusedRow& row : report.refused) {
      table.add({row.id, row.reason});
    }
    text = table.text("  ");
  } else {
    std::map<std::string, std::size_t> counts;
    for (const sim::RefusedRow& row : report.refused) {
      ++counts[row.reason];
    }
    TextTable table({{"refused because"}, {"rows", Align::kRight}});
    for (const auto& [reason, count] : counts) {
      table.add({reason, std::to_string(count)});
    }
    text = table.text("  ");
  }
  return text;
}

void write_statistics(JsonWriter& json, const sim::ErrorStatistics& statistics) {
  json.field("rows", static_cast<std::int64_t>(statistics.rows));
  json.field("median", statistics.median);
  json.field("p90", statistics.p90);
  json.field("bias", statistics.bias);
}

void write_groups(JsonWriter& json,
                  const char* key,
                  const std::vector<sim::GroupStatistics>& groups) {
  json.begin_array(key);
  for (const sim::GroupStatistics& group : groups) {
    json.begin_object();
    json.field("name", group.name);
    write_statistics(json, group.inside);
    json.field("median_of_rest", group.rest.median);
    json.end_object();
  }
  json.end_array();
}

void write_summary(JsonWriter& json, const sim::MetricSummary& summary) {
  json.begin_object(std::string(name_of(summary.metric)).c_str());
  write_statistics(json, summary.all);
  write_groups(json, "by_source", summary.by_source);
  write_groups(json, "by_hardware", summary.by_hardware);
  write_groups(json, "by_regime", summary.by_regime);
  json.begin_object("left_out");
  write_statistics(json, summary.left_out);
  json.end_object();
  write_groups(json, "by_reason", summary.by_reason);
  json.begin_array("worst");
  for (const sim::ValidatedRow* row : summary.worst) {
    json.element(row->id);
  }
  json.end_array();
  json.end_object();
}

}  // namespace

std::string validation_text(const ValidationView& view) {
  std::string text = view.explain ? std::string(kRule) + "\n" : std::string();
  for (const sim::MetricSummary& summary : summarize(view.report.rows)) {
    text += fmt::format("{}: {} rows, median error {}, p90 {}, bias {}\n\n",
                        name_of(summary.metric),
                        summary.all.rows,
                        percent(summary.all.median),
                        percent(summary.all.p90),
                        signed_percent(summary.all.bias));
    if (summary.metric != sim::Metric::kTokensPerSecond && summary.all.rows > 0) {
      text += groups_text("regime", summary.by_regime) + "\n";
      text += groups_text("hardware", summary.by_hardware) + "\n";
      text += groups_text("source (left out)", summary.by_source) + "\n";
      text += worst_text(summary) + "\n";
    }
    if (summary.left_out.rows > 0) {
      text += fmt::format(
          "{} of rows that the rule leaves out, not counted above: {} rows, median "
          "error {}, p90 {}, bias {}\n\n",
          name_of(summary.metric),
          summary.left_out.rows,
          percent(summary.left_out.median),
          percent(summary.left_out.p90),
          signed_percent(summary.left_out.bias));
      text += groups_text("left out because", summary.by_reason) + "\n";
    }
  }
  return text + refused_text(view.report, view.explain);
}

std::string validation_json(const ValidationView& view) {
  JsonWriter json;
  json.begin_object();
  json.field("schema_version", 1);
  json.begin_array("rows");
  for (const sim::ValidatedRow& row : view.report.rows) {
    json.begin_object();
    json.field("id", row.id);
    json.field("metric", name_of(row.metric));
    json.field("predicted", row.predicted);
    json.field("measured", row.measured);
    json.field("error", row.error);
    json.field("regime", row.regime);
    json.field("selected", row.left_out.empty());
    if (!row.left_out.empty()) {
      json.field("left_out", row.left_out);
    }
    json.end_object();
  }
  json.end_array();
  json.begin_array("refused");
  for (const sim::RefusedRow& row : view.report.refused) {
    json.begin_object();
    json.field("id", row.id);
    json.field("reason", row.reason);
    json.end_object();
  }
  json.end_array();
  json.begin_object("summary");
  for (const sim::MetricSummary& summary : summarize(view.report.rows)) {
    write_summary(json, summary);
  }
  json.end_object();
  json.end_object();
  return json.take();
}

std::string validation_csv(const ValidationView& view) {
  std::string text = "id,source,hardware,metric,predicted,measured,error,regime,selected,reason\n";
  for (const sim::ValidatedRow& row : view.report.rows) {
    text += fmt::format("{},{},{},{},{:.6g},{:.6g},{:.4f},{},{},{}\n",
                        csv_field(row.id),
                        csv_field(row.source),
                        csv_field(row.hardware),
                        name_of(row.metric),
                        row.predicted,
                        row.measured,
                        row.error,
                        csv_field(row.regime),
                        row.left_out.empty() ? 1 : 0,
                        csv_field(row.left_out));
  }
  return text;
}

}  // namespace lockstep::cli
