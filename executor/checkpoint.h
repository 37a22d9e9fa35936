// Checkpoint: a folder with one safetensors file per rank and a manifest that says which elements
// of which parameter each tensor holds, so that any sharding can read what any other wrote.
//
// Running statistics of batch norms are tensors of their own, one for each module and data-parallel
// rank: ranks have different ones, and a run goes on with those that it had.
//
// Atomic: written as `step-N.partial`, synced, and renamed; what has no manifest was never
// finished. A file's tensors are flat; `boxes` of the manifest are runs of elements of the whole
// parameter. Format of the files: safetensors (huggingface.co/docs/safetensors, "Format").
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "core/model_graph.h"
#include "executor/host.h"
#include "executor/safetensors.h"

namespace lockstep::exec {

/// "parameter", "state0", "state1": what a tensor of a shard is.
std::string part_name(std::size_t part);

/// Collects the shards of all ranks; threads of different ranks at once.
class CheckpointWriter {
 public:
  /// The checkpoint after `step` steps, below `folder`.
  CheckpointWriter(const ModelGraph& graph, std::filesystem::path folder, std::int64_t step);
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;
  /// What was not published is removed.
  ~CheckpointWriter();

  /// Takes note of what this rank could write; the memory must stay as it is until finish().
  void add(const Shard& shard);
  void add(const RunningStatistics& statistics);
  /// All ranks have added theirs: writes this rank's file.
  void finish(std::int32_t rank);
  /// All ranks have finished: the checkpoint appears under its name, whole. Returns its folder.
  /// CheckFailedError where a value is infinite or NaN: older checkpoints stay the newest ones.
  std::filesystem::path publish();

 private:
  struct File {
    NamedTensor data[4];                 ///< by part
    std::vector<std::int64_t> boxes[4];  ///< by part: (parameter, first, elements, offset)...
  };

  struct Shown {
    Shard shard;  ///< but for its parts, which are copied
    std::vector<Operand> parts;
  };

  std::filesystem::path partial() const;
  void copy_part(const Shown& shown, std::size_t part, File& file) const;

  const ModelGraph& graph_;
  std::filesystem::path folder_;
  std::int64_t step_;
  std::mutex mutex_;
  std::map<std::int32_t, std::vector<Shown>> shown_;  ///< by rank
  std::map<std::int32_t, NamedTensors> statistics_;   ///< by rank
  std::set<std::int32_t> finished_;                   ///< ranks
  std::string broken_;  ///< where there are infinities or NaN, if anywhere
  /// Who writes what begins at (part, parameter, element).
  std::map<std::tuple<std::size_t, std::int32_t, std::int64_t>, std::int32_t> writer_;
};

/// A checkpoint in memory: every part of every parameter, whole, in doubles.
class Checkpoint {
 public:
  /// BadInputError with file and place for what is missing, truncated or of another model.
  Checkpoint(const ModelGraph& graph, const std::filesystem::path& folder);

  std::int64_t step() const { return step_; }
  /// False if the checkpoint has no such elements.
  bool read(std::size_t part,
            std::int32_t parameter,
            std::int64_t first,
            std::int64_t n,
            double* values) const;
  /// Fills the shard's parts.
  void fill(const Shard& shard) const;
  /// With what this data-parallel rank had; one that was not there goes on with the first one's.
  void fill(const RunningStatistics& statistics) const;

 private:
  struct Part {
    std::vector<double> values;  ///< of the whole parameter
    std::int64_t filled = 0;
  };

  void load(const std::filesystem::path& path);
  void place(std::size_t part,
             std::span<const std::int64_t> box,
             const NamedTensor& data,
             const std::string& path);
  void check_whole(const std::string& path) const;

  const ModelGraph& graph_;
  std::int64_t step_ = 0;
  std::map<std::pair<std::size_t, std::int32_t>, Part> values_;  ///< by part and parameter
  NamedTensors statistics_;
};

/// The newest finished checkpoint below `folder`, or an empty path.
std::filesystem::path latest_checkpoint(const std::filesystem::path& folder);

}  // namespace lockstep::exec
