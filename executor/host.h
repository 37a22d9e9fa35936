// Host: what a run needs from outside its plan: batches, the learning rate, and somewhere to put
// losses and shards. The interpreter calls it from every rank's thread at once; an implementation
// answers by the arguments alone or guards what it keeps.
#pragma once

#include <cstdint>
#include <span>

#include "core/plan.h"

namespace lockstep::exec {

/// Memory of one view.
struct Operand {
  void* data = nullptr;
  std::int64_t elements = 0;
  DType dtype = DType::kFp32;
  Category category = Category::kTemporary;
  std::int32_t parameter = -1;  ///< the one parameter that its buffer belongs to, or -1

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
};

/// Where an operation runs: what the numbers that it makes may depend on.
struct RunPlace {
  SectionKind section = SectionKind::kStep;
  std::int64_t iteration = 0;
  std::int32_t rank = 0;
  std::int32_t data_coordinate = 0;  ///< over both data axes
  std::int32_t microbatch = 0;
};

/// Samples of one micro-batch: of `replicas` data-parallel ranks from data_coordinate on.
struct BatchRequest {
  RunPlace place;
  std::int64_t replicas = 1;
  std::int64_t samples = 0;         ///< of each replica
  std::int64_t seq = 0;             ///< tokens of a sample
  const Operand* inputs = nullptr;  ///< tokens (int64) or features, row-major; null = not asked
  /// int64; null = not asked. One below 0 (PyTorch's ignore_index is -100) counts for nothing.
  const Operand* labels = nullptr;
};

/// The labels of one data-parallel rank in a step, over all its micro-batches.
struct LabelRequest {
  RunPlace place;
  std::int64_t microbatches = 0;
  std::int64_t samples = 0;  ///< of each micro-batch
  std::int64_t seq = 0;      ///< tokens of a sample
};

struct Shard {
  RunPlace place;
  const Layout& layout;
  std::int32_t coordinate = 0;         ///< of the layout
  std::int64_t tensor_degree = 1;      ///< the layout's parameters are this rank's part of a cut
  std::int64_t tensor_coordinate = 0;  ///< over so many tensor-parallel ranks
  std::span<const Operand> parts;      ///< parameters, then states in the optimizer's order
};

/// What a batch norm keeps beside its parameters: means, then unbiased variances, of what this rank
/// has seen.
struct RunningStatistics {
  RunPlace place;
  std::uint32_t module = 0;
  Operand values;
};

class Host {
 public:
  Host() = default;
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  virtual ~Host() = default;

  virtual void load(const BatchRequest& request) = 0;
  /// How many of the labels that load() gives this rank in the step count; all, unless it knows
  /// better.
  virtual std::int64_t counted_labels(const LabelRequest& request) {
    return request.microbatches * request.samples * request.seq;
  }
  virtual double learning_rate(std::int64_t iteration) const = 0;
  /// What an evaluation predicts: logits (samples x seq, vocabulary here), before the loss reads
  /// them. For who generates.
  virtual void logits(const RunPlace& /*place*/, const Operand& /*logits*/) {}
  /// The loss of the step or the evaluation, as this rank sees it.
  virtual void loss(const RunPlace& place, double value) = 0;
  /// Section `save`: a shard of parameters and its optimizer states, of the layout's elements for
  /// this coordinate. Who saves copies them, who resumes fills them.
  virtual void shard(const Shard& shard) = 0;
  /// Section `save`, likewise.
  virtual void statistics(const RunningStatistics& /*statistics*/) {}
  /// This rank has no more shards, and all ranks have shown theirs.
  virtual void commit(const RunPlace& place) = 0;
  /// First values of a parameter: elements [first, first + n) of the whole one, in doubles. False:
  /// none are known, draw them.
  virtual bool first_values(std::int32_t /*parameter*/,
                            std::int64_t /*first*/,
                            std::int64_t /*n*/,
                            double* /*values*/) const {
    return false;
  }
};

}  // namespace lockstep::exec
