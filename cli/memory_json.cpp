// The memory report for programs: JSON as the command contract fixes it, and CSV.
#include <fmt/format.h>

#include "cli/memory_text.h"
#include "core/io/json_writer.h"

namespace lockstep::cli {
namespace {

void write_term(JsonWriter& json, const MemoryTerm& term) {
  json.field("name", term.name);
  json.field("bytes", term.bytes);
  json.field("formula", term.formula);
  json.field("source", term.source);
  json.field("basis", name_of(term.basis));
}

void write_terms(JsonWriter& json, const char* key, const std::vector<MemoryTerm>& terms) {
  json.begin_array(key);
  for (const MemoryTerm& term : terms) {
    json.begin_object();
    write_term(json, term);
    json.end_object();
  }
  json.end_array();
}

void write_peak(JsonWriter& json, const RankMemory& it) {
  json.begin_object("peak");
  json.field("section", it.peak_section);
  json.field("phase", name_of(it.peak.phase));
  json.field("work", name_of(it.peak.work));
  json.field("microbatch", static_cast<std::int64_t>(it.peak.microbatch));
  json.end_object();
}

void write_rank(JsonWriter& json, const MemoryView& view, const RankMemory& it) {
  json.begin_object();
  json.field("rank", it.rank);
  json.field("count", it.count);
  json.field("ranks_like_this", view.report.ranks_of(it));
  json.field("peak_bytes", it.peak_bytes());
  json.field("upper_bound_bytes", it.upper_bound_bytes());
  json.field("tensor_bytes", it.tensor_bytes());
  json.field("peak_operation", it.peak_text);
  write_peak(json, it);
  json.begin_object("by_category");
  for (int i = 0; i < kCategoryCount; ++i) {
    const std::string key(name_of(static_cast<Category>(i)));
    json.field(key.c_str(), it.bytes[static_cast<std::size_t>(i)]);
  }
  json.field("non_tensor", it.non_tensor_bytes());
  json.end_object();
  write_terms(json, "non_tensor", it.non_tensor);
  write_terms(json, "margins", it.margins);
  if (view.explain) {
    json.begin_array("explain");
    for (const LedgerRow& row : it.rows) {
      json.begin_object();
      json.field("category", name_of(row.category));
      json.field("buffers", row.buffers);
      write_term(json, row.term);
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
}

void write_changes(JsonWriter& json, const char* key, const std::vector<MemoryChange>& changes) {
  json.begin_array(key);
  for (const MemoryChange& it : changes) {
    json.begin_object();
    json.field("flags", it.flags);
    json.field("peak_bytes", it.peak_bytes);
    json.field("fits", it.fits);
    json.field("cost", it.cost);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

void write_memory(JsonWriter& json, const MemoryView& view) {
  const MemoryReport& report = view.report;
  json.field("parameters", report.parameters);
  json.field("device_bytes", report.device_bytes);
  json.field("worst_rank", report.worst().rank);
  json.field("fits", report.fits());
  json.field("upper_bound_fits", report.surely_fits());
  json.field("counted", report.counted);
  json.begin_array("ranks");
  for (const RankMemory& it : report.ranks) {
    write_rank(json, view, it);
  }
  json.end_array();
  if (view.advice != nullptr) {
    json.begin_object("advice");
    write_changes(json, "single", view.advice->single);
    write_changes(json, "together", view.advice->together);
    json.end_object();
  }
}

std::string memory_json(const MemoryView& view) {
  JsonWriter json;
  json.begin_object();
  json.field("schema_version", 1);
  write_memory(json, view);
  json.end_object();
  return json.text();
}

std::string memory_csv(const MemoryView& view) {
  std::string text = "rank,count,category,bytes\n";
  for (const RankMemory& it : view.report.ranks) {
    const auto add = [&](std::string_view name, std::int64_t bytes) {
      text += fmt::format("{},{},{},{}\n", it.rank, it.count, name, bytes);
    };
    for (int i = 0; i < kCategoryCount; ++i) {
      add(name_of(static_cast<Category>(i)), it.bytes[static_cast<std::size_t>(i)]);
    }
    add("non_tensor", it.non_tensor_bytes());
    add("peak", it.peak_bytes());
    add("upper_bound", it.upper_bound_bytes());
  }
  return text;
}

}  // namespace lockstep::cli
