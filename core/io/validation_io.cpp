#include "core/io/validation_io.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr std::int64_t kMostCount = std::int64_t{1} << 40;

bool has(const CsvTable& table, std::string_view name) {
  return std::find(table.header.begin(), table.header.end(), name) != table.header.end();
}

/// Fields of one row by column name. A column that the table lacks reads as empty.
class Fields {
 public:
  Fields(const CsvTable& table, const CsvRow& row) : table_(table), row_(row) {}

  std::string text(std::string_view column) const {
    return has(table_, column) ? table_.text(row_, table_.column(column)) : std::string();
  }
  std::optional<std::int64_t> count(std::string_view column, std::int64_t least = 1) const {
    if (!has(table_, column)) {
      return std::nullopt;
    }
    const auto value = table_.integer(row_, table_.column(column));
    if (value && (*value < least || *value > kMostCount)) {
      table_.refuse(row_, fmt::format("column {}: {} is out of range", column, *value));
    }
    return value;
  }
  std::optional<double> positive(std::string_view column) const {
    if (!has(table_, column)) {
      return std::nullopt;
    }
    const auto value = table_.number(row_, table_.column(column));
    if (value && *value <= 0) {
      table_.refuse(row_, fmt::format("column {}: must be positive", column));
    }
    return value;
  }
  std::string required(std::string_view column) const {
    std::string value = table_.text(row_, table_.column(column));
    if (value.empty()) {
      table_.refuse(row_, fmt::format("column {}: must not be empty", column));
    }
    return value;
  }

 private:
  const CsvTable& table_;
  const CsvRow& row_;
};

/// Words of the table without the remarks in brackets behind them: "none(pp only)" is none.
std::string word(const std::string& text) {
  std::string value = text.substr(0, text.find('('));
  while (!value.empty() && value.back() == ' ') {
    value.pop_back();
  }
  std::transform(value.begin(), value.end(), value.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return value;
}

void read_sizes(const Fields& fields, TrainingRow& row) {
  row.parameters_billion = fields.positive("params_b");
  row.gpus = fields.count("gpus");
  row.gpus_per_node = fields.count("gpus_per_node");
  row.layers = fields.count("layers");
  row.hidden = fields.count("hidden");
  row.ffn = fields.count("ffn");
  row.heads = fields.count("heads");
  row.kv_heads = fields.count("kv_heads");
  row.vocab = fields.count("vocab");
  row.seq_len = fields.count("seq_len");
  row.global_batch = fields.count("global_batch_seqs");
  row.micro_batch = fields.count("micro_batch");
}

void read_strategy(const Fields& fields, TrainingRow& row) {
  row.dp = fields.count("dp");
  row.tp = fields.count("tp");
  row.sp = fields.count("sp", 0);
  row.pp = fields.count("pp");
  row.vpp = fields.count("vpp");
  row.cp = fields.count("cp");
  row.ep = fields.count("ep");
  row.sharding = word(fields.text("sharding"));
  row.precision = word(fields.text("precision"));
  row.recompute = word(fields.text("recompute"));
  row.attention = word(fields.text("attention_impl"));
  row.optimizer = word(fields.text("optimizer"));
}

}  // namespace

ValidationTable kind_of(const CsvTable& table) {
  if (has(table, "metric_step_time_s")) {
    return ValidationTable::kTraining;
  }
  return has(table, "measured_peak_gib") ? ValidationTable::kMemory : ValidationTable::kOther;
}

std::vector<TrainingRow> training_rows(const CsvTable& table) {
  const bool memory = kind_of(table) == ValidationTable::kMemory;
  std::vector<TrainingRow> rows;
  rows.reserve(table.rows.size());
  for (const CsvRow& record : table.rows) {
    const Fields fields(table, record);
    TrainingRow& row = rows.emplace_back();
    row.line = record.line;
    row.id = fields.required("id");
    row.source = fields.required(memory ? "source" : "source_repo_or_paper");
    row.hardware = fields.required("hardware");
    row.model = fields.text(memory ? "model" : "model_name");
    read_sizes(fields, row);
    read_strategy(fields, row);
    row.finetune = word(fields.text("finetune_method"));
    row.offload = word(fields.text("cpu_offload"));
    row.rank_or_stage = fields.text("rank_or_stage");
    row.memory_kind = fields.text("kind");
    row.step_time_s = fields.positive("metric_step_time_s");
    row.tokens_per_s_per_gpu = fields.positive("metric_tokens_per_s_per_gpu");
    row.peak_gib = fields.positive(memory ? "measured_peak_gib" : "metric_peak_mem_gib");
  }
  return rows;
}

std::vector<HardwareName> hardware_names(const CsvTable& table) {
  std::vector<HardwareName> names;
  for (const CsvRow& record : table.rows) {
    const Fields fields(table, record);
    names.push_back({fields.required("hardware"), fields.required("preset")});
  }
  return names;
}

std::vector<SiteNetwork> site_networks(const CsvTable& table) {
  std::vector<SiteNetwork> sites;
  for (const CsvRow& record : table.rows) {
    const Fields fields(table, record);
    SiteNetwork& site = sites.emplace_back();
    site.source = fields.required("source");
    site.hardware = fields.text("hardware");
    site.nics_per_node = fields.count("nics_per_node").value_or(1);
    site.nic_gigabits = fields.positive("nic_gigabits").value_or(0);
  }
  return sites;
}

std::vector<AttentionKernel> attention_kernels(const CsvTable& table) {
  std::vector<AttentionKernel> kernels;
  for (const CsvRow& record : table.rows) {
    const Fields fields(table, record);
    AttentionKernel& kernel = kernels.emplace_back();
    kernel.attention = fields.required("attention_impl");
    kernel.hardware = fields.required("hardware");
    kernel.fraction = fields.positive("attention_fraction").value_or(0.6);
  }
  return kernels;
}

std::vector<EagerContext> eager_contexts(const CsvTable& table) {
  std::vector<EagerContext> contexts;
  for (const CsvRow& record : table.rows) {
    const Fields fields(table, record);
    contexts.push_back({fields.required("hardware"), fields.count("context_mib").value_or(0)});
  }
  return contexts;
}

}  // namespace lockstep
