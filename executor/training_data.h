// TrainingData: a text or token file as samples of seq tokens, and which sample each data-parallel
// rank reads when.
//
// Sample i is tokens [i * seq, (i + 1) * seq) with the tokens one further as labels, so no token is
// trained on twice in an epoch. The last tenth of the tokens is kept for evaluation. Ranks read in
// the order of DistributedSampler (core/sampler.h).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/sampler.h"

namespace lockstep::exec {

/// Token ids of a file. BadInputError with the place for what cannot be read.
struct TokenFile {
  std::vector<std::uint16_t> tokens;
  std::int64_t vocabulary = 0;  ///< ids are below this
};

/// GPT-2 token shards (llm.c: 256 int32 of header, magic 20240520, version 1, count; then uint16
/// ids) by their magic; any other file is text, a token a byte.
TokenFile read_tokens(const std::string& path);

/// The bytes of a text as tokens.
TokenFile text_tokens(const std::string& text);

class TrainingData {
 public:
  /// BadInputError if there are too few tokens for one sample of `seq` in each part.
  TrainingData(TokenFile file, std::int64_t seq);

  std::int64_t samples(bool evaluation) const {
    return evaluation ? evaluation_samples_ : training_samples_;
  }
  std::int64_t seq() const { return seq_; }
  std::int64_t vocabulary() const { return file_.vocabulary; }

  /// Copies sample `index` of a part: seq inputs and seq labels; either may be null.
  void copy(bool evaluation, std::int64_t index, std::int64_t* inputs, std::int64_t* labels) const;

 private:
  TokenFile file_;
  std::int64_t seq_;
  std::int64_t training_samples_ = 0;
  std::int64_t evaluation_samples_ = 0;
};

/// Which sample a rank reads at a place in its own sequence, over all epochs. From any thread.
class SampleOrder {
 public:
  /// spec.epoch is ignored. BadInputError if a rank would have no samples.
  explicit SampleOrder(const SamplerSpec& spec);

  /// The `position`-th sample that `rank` reads, counted from the first epoch on.
  std::int64_t sample(std::int32_t rank, std::int64_t position);
  std::int64_t samples_per_epoch() const { return length_; }

 private:
  SamplerSpec spec_;
  std::int64_t length_;
  std::mutex mutex_;
  /// By epoch and rank; the epochs that are being read.
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int64_t>> orders_;
};

}  // namespace lockstep::exec
