// Rows of published runs (data/validation/train_throughput.csv and memory.csv) and what is known of
// the machines they ran on (hardware.csv, sites.csv). Facts as printed: an empty field stays empty,
// and what a row means as a scenario is decided by simulator/validate_training.h.
//
// Every refusal is a BadInputError of one line with file, line and column name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/io/csv_reader.h"

namespace lockstep {

enum class ValidationTable : std::uint8_t { kTraining, kMemory, kOther };

/// One published run. Strings are as the table spells them, in lower case where they are words.
struct TrainingRow {
  std::int32_t line = 0;
  std::string id;
  std::string source;
  std::string hardware;
  std::string model;
  std::optional<double> parameters_billion;
  std::optional<std::int64_t> gpus;
  std::optional<std::int64_t> gpus_per_node;
  std::optional<std::int64_t> layers;
  std::optional<std::int64_t> hidden;
  std::optional<std::int64_t> ffn;
  std::optional<std::int64_t> heads;
  std::optional<std::int64_t> kv_heads;
  std::optional<std::int64_t> vocab;
  std::optional<std::int64_t> seq_len;
  std::optional<std::int64_t> global_batch;
  std::optional<std::int64_t> micro_batch;
  std::optional<std::int64_t> dp;
  std::optional<std::int64_t> tp;
  std::optional<std::int64_t> sp;
  std::optional<std::int64_t> pp;
  std::optional<std::int64_t> vpp;
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> ep;
  std::string sharding;
  std::string precision;
  std::string recompute;
  std::string attention;
  std::string optimizer;
  std::string finetune;  ///< empty or "full": all parameters are trained
  std::string offload;   ///< what lies on the host
  std::string rank_or_stage;
  std::string memory_kind;  ///< "allocated", "reserved", ...
  std::optional<double> step_time_s;
  std::optional<double> tokens_per_s_per_gpu;
  std::optional<double> peak_gib;
};

/// Which table this is, by its columns.
ValidationTable kind_of(const CsvTable& table);
std::vector<TrainingRow> training_rows(const CsvTable& table);

/// What a table calls the hardware, and the preset that has its figures.
struct HardwareName {
  std::string hardware;
  std::string preset;
};
std::vector<HardwareName> hardware_names(const CsvTable& table);

/// Network of the machines of one source, where it was printed: replaces the preset's.
struct SiteNetwork {
  std::string source;    ///< rows whose source begins so
  std::string hardware;  ///< rows whose hardware begins so; empty = all of the source
  std::int64_t nics_per_node = 1;
  double nic_gigabits = 0;
};
std::vector<SiteNetwork> site_networks(const CsvTable& table);

/// How fast an attention kernel of this name is where it is not the best one for the device:
/// replaces the preset's attention_fraction.
struct AttentionKernel {
  std::string attention;  ///< rows whose attention_impl begins so
  std::string hardware;   ///< rows whose hardware begins so
  double fraction = 0;    ///< of peak, forward
};
std::vector<AttentionKernel> attention_kernels(const CsvTable& table);

/// Driver context that loads all kernels at its start, as before PyTorch 1.13.
struct EagerContext {
  std::string hardware;  ///< rows whose hardware begins so
  std::int64_t mebibytes = 0;
};
std::vector<EagerContext> eager_contexts(const CsvTable& table);

}  // namespace lockstep
