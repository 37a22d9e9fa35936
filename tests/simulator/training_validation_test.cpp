// Predictions of published runs: how many rows the rule takes, and how far off they may be. The
// bounds are what was reached, with slack; a change of the cost model that breaks them is worse on
// measurements, whatever else it improves.
#include <algorithm>

#include "core/error.h"
#include "simulator/validation_summary.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::sim;

namespace {

std::string path(const char* name) {
  return std::string("data/validation/") + name;
}

Machines machines() {
  return {hardware_names(load_csv(path("hardware.csv"), "test")),
          site_networks(load_csv(path("sites.csv"), "test")),
          attention_kernels(load_csv(path("attention.csv"), "test")),
          eager_contexts(load_csv(path("contexts.csv"), "test"))};
}

std::vector<TrainingRow> selected(const char* name) {
  const CsvTable table = load_csv(path(name), "test");
  std::vector<TrainingRow> rows = training_rows(table);
  const ValidationTable kind = kind_of(table);
  rows.erase(std::remove_if(rows.begin(),
                            rows.end(),
                            [&](const TrainingRow& row) { return !left_out(row, kind).empty(); }),
             rows.end());
  return rows;
}

/// Every `step`-th row: sources stand together in the table, so each has its share.
std::vector<TrainingRow> thinned(const std::vector<TrainingRow>& rows, std::size_t step) {
  std::vector<TrainingRow> some;
  for (std::size_t i = 0; i < rows.size(); i += step) {
    some.push_back(rows[i]);
  }
  return some;
}

constexpr const char* kHeader =
    "id,source_repo_or_paper,hardware,gpus,gpus_per_node,model_name,params_b,layers,hidden,ffn,"
    "heads,kv_heads,vocab,seq_len,global_batch_seqs,micro_batch,dp,tp,sp,pp,vpp,cp,ep,sharding,"
    "precision,recompute,attention_impl,metric_step_time_s\n";

TrainingRow row_of(const std::string& text) {
  return training_rows(parse_csv(kHeader + text, "rows.csv", "test")).front();
}

const char* const kGated =
    "a,s,A100-SXM-80GB,16,8,m,8.03,32,4096,14336,32,8,128256,8192,64,1,8,2,1,1,1,1,1,zero1,bf16,"
    "none,flash2,9.5\n";

}  // namespace

TEST_CASE("The rule takes 409 step times and 128 peaks of the published tables") {
  CHECK(selected("train_throughput.csv").size() == 409);
  CHECK(selected("memory.csv").size() == 128);
}

TEST_CASE("Published step times are predicted within these bounds") {
  const std::vector<TrainingRow> rows = thinned(selected("train_throughput.csv"), 5);
  const ValidationReport report =
      validate_rows(rows, ValidationTable::kTraining, machines(), {.threads = 2});
  const std::vector<MetricSummary> summary = summarize(report.rows);
  REQUIRE(!summary.empty());
  REQUIRE(summary.front().metric == Metric::kStepTime);
  CHECK(report.refused.size() <= 2);  // of those that claim more than the device's peak
  CHECK(summary.front().all.rows + report.refused.size() == rows.size());
  CHECK(summary.front().all.median < 0.10);
  CHECK(summary.front().all.p90 < 0.35);
}

TEST_CASE("Published allocator peaks are predicted within these bounds") {
  std::vector<TrainingRow> rows = selected("memory.csv");
  rows.erase(std::remove_if(rows.begin(),
                            rows.end(),
                            [](const TrainingRow& row) {
                              return row.memory_kind.find("allocated") == std::string::npos;
                            }),
             rows.end());
  const ValidationReport report =
      validate_rows(rows, ValidationTable::kMemory, machines(), {.threads = 2});
  const std::vector<MetricSummary> summary = summarize(report.rows);
  REQUIRE(summary.size() == 1);
  CHECK(summary.front().all.rows >= 13);
  CHECK(summary.front().all.median < 0.10);
}

TEST_CASE("What a row prints becomes the scenario, and its form follows from the parameter count") {
  const Scenario it = scenario_of(row_of(kGated), machines());
  CHECK(it.model.gated_mlp());
  CHECK_FALSE(it.model.tied_embeddings);
  CHECK(parameter_count(it.model) == 8'030'261'248);  // Llama 3.1 8B, published
  CHECK(it.cluster.nodes == 2);
  CHECK(it.strategy.tensor.degree == 2);
  CHECK(it.strategy.tensor.sequence_parallel);
  CHECK(it.strategy.data.kind == DataKind::kZero1);
  CHECK(it.training.accumulate == 8);
  CHECK(it.training.attention == AttentionKind::kFlash);
}

TEST_CASE("Another GPU, another core count or another network moves the prediction as it must") {
  const TrainingRow row = row_of(kGated);
  Scenario scenario = scenario_of(row, machines());
  const double base = predicted_step_time(scenario);
  scenario.cluster.device.matmul_fraction /= 2;
  CHECK(predicted_step_time(scenario) > 1.3 * base);
  scenario.cluster.device.matmul_fraction *= 2;
  scenario.cluster.inter_node.bandwidth /= 20;
  CHECK(predicted_step_time(scenario) > base);
}

TEST_CASE("A row without a core field is left out, with the field's name") {
  const auto without = [](const std::string& from, const std::string& to) {
    std::string text = kGated;
    text.replace(text.find(from), from.size(), to);
    return left_out(row_of(text), ValidationTable::kTraining);
  };
  CHECK(left_out(row_of(kGated), ValidationTable::kTraining).empty());
  CHECK(without("zero1,bf16", ",bf16") == "sharding is not printed");
  CHECK(without("bf16,none", "bf16,") == "recompute is not printed");
  CHECK(without("bf16,none", "fp8,none") == "precision fp8");
  CHECK(without("1,1,1,1,zero1", "1,1,2,1,zero1") == "cp or ep is not 1");
  CHECK(without("flash2,9.5", "flash2,") == "no step time is printed");
}

TEST_CASE("A row that no plan exists for is refused with the reason, not predicted") {
  std::string text = kGated;
  text.replace(text.find("A100-SXM-80GB"), 13, "Abacus");
  const ValidationReport report =
      validate_rows({row_of(text)}, ValidationTable::kTraining, machines(), {});
  CHECK(report.rows.empty());
  REQUIRE(report.refused.size() == 1);
  CHECK(report.refused.front().reason.find("Abacus") != std::string::npos);
}

TEST_CASE("A field that is no number is refused with file, line and column") {
  std::string text = kGated;
  text.replace(text.find("4096"), 4, "40x6");
  try {
    row_of(text);
    FAIL("accepted");
  } catch (const BadInputError& error) {
    const std::string message = error.what();
    CHECK(message.find("rows.csv:2: ") != std::string::npos);
    CHECK(message.find("hidden") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

TEST_CASE("Statistics of ten errors by hand, and a source against the rest") {
  const ErrorStatistics all =
      statistics_of({0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9, -1.0});
  CHECK(all.rows == 10);
  CHECK(all.median == 0.6);
  CHECK(all.p90 == 1.0);
  CHECK(all.bias == 0.1);
  std::vector<ValidatedRow> rows(4);
  const double errors[] = {0.1, -0.3, 0.2, 0.9};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].id = std::to_string(i);
    rows[i].source = i < 2 ? "a" : "b";
    rows[i].error = errors[i];
  }
  rows[3].left_out = "not by the rule";
  const std::vector<MetricSummary> summary = summarize(rows);
  REQUIRE(summary.size() == 1);
  CHECK(summary[0].all.rows == 3);
  REQUIRE(summary[0].by_source.size() == 2);
  CHECK(summary[0].by_source[0].inside.median == 0.3);
  CHECK(summary[0].by_source[0].rest.median == 0.2);
  CHECK(summary[0].worst.front()->id == "1");
}

TEST_CASE("Software from before fused attention has a context that holds all kernels") {
  std::string text = kGated;
  CHECK(scenario_of(row_of(text), machines()).cluster.device.context_bytes < std::int64_t{600}
                                                                                 << 20);
  text.replace(text.find("flash2"), 6, "unfused");
  CHECK(scenario_of(row_of(text), machines()).cluster.device.context_bytes == std::int64_t{1573}
                                                                                  << 20);
}

TEST_CASE("A step time that claims more than the device's peak is refused, with the claim") {
  // By hand: 6 x (8,030,261,248 - 2 x 128,256 x 4,096) x 64 x 8,192 FLOPs on 16 x 312 TFLOP/s.
  const TrainingRow row = row_of(kGated);
  CHECK(claimed_fraction(row, scenario_of(row, machines())) == Approx(4.3983 / 9.5).epsilon(1e-3));
  std::string text = kGated;
  text.replace(text.find("9.5"), 3, "1.0");
  const ValidationReport report =
      validate_rows({row_of(text)}, ValidationTable::kTraining, machines(), {});
  CHECK(report.rows.empty());
  REQUIRE(report.refused.size() == 1);
  CHECK(report.refused.front().reason.find("claims 440 % of the device's peak") !=
        std::string::npos);
}

TEST_CASE("Constants are an argument: slower memory makes a longer step") {
  const Scenario scenario = scenario_of(row_of(kGated), machines());
  Efficiency slow;
  slow.memory_fraction /= 2;
  CHECK(predicted_step_time(scenario, slow) > predicted_step_time(scenario));
  CHECK(predicted_step_time(scenario, Efficiency{}) == predicted_step_time(scenario));
}

TEST_CASE("Rows outside the rule have figures of their own, by reason") {
  ValidatedRow in;
  in.error = 0.1;
  ValidatedRow out = in;
  out.error = -0.5;
  out.left_out = "vpp is not printed";
  const std::vector<ValidatedRow> rows{in, out};
  const std::vector<MetricSummary> summary = summarize(rows);
  REQUIRE(summary.size() == 1);
  CHECK(summary.front().all.rows == 1);
  CHECK(summary.front().all.median == Approx(0.1));
  CHECK(summary.front().left_out.rows == 1);
  CHECK(summary.front().left_out.bias == Approx(-0.5));
  REQUIRE(summary.front().by_reason.size() == 1);
  CHECK(summary.front().by_reason.front().name == "vpp is not printed");
}
