// TrainingData: what a run trains on, as samples, and which sample each data-parallel rank reads
// when. Ranks read in the order of DistributedSampler (core/sampler.h).
//
// Of tokens (a text or a token file), sample i is tokens [i * seq, (i + 1) * seq) with the tokens
// one further as labels, so no token is trained on twice in an epoch; or, document by document, as
// much of one as fits, padded where it ends: the labels of padding are -100 and count for nothing,
// and so samples have different numbers of tokens. The last tenth is kept for evaluation.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/sampler.h"
#include "executor/host.h"

namespace lockstep::exec {

/// Token ids of a file. BadInputError with the place for what cannot be read.
struct TokenFile {
  std::vector<std::uint16_t> tokens;
  std::int64_t vocabulary = 0;              ///< ids are below this
  std::vector<std::uint16_t> document_end;  ///< tokens that end a document: they belong to it
  std::string source = "the data";          ///< path, for errors
};

/// GPT-2 token shards (llm.c: 256 int32 of header, magic 20240520, version 1, count; then uint16
/// ids) by their magic; any other file is text, a token a byte.
TokenFile read_tokens(const std::string& path);

/// The bytes of a text as tokens.
TokenFile text_tokens(const std::string& text);

/// Where a sample goes: rows [first, first + seq) of a micro-batch. Either operand may be null.
struct BatchRows {
  const Operand* inputs = nullptr;
  const Operand* labels = nullptr;
  std::int64_t first = 0;
};

class TrainingData {
 public:
  TrainingData() = default;
  TrainingData(const TrainingData&) = delete;
  TrainingData& operator=(const TrainingData&) = delete;
  virtual ~TrainingData() = default;

  /// Of a part.
  virtual std::int64_t samples(bool evaluation) const = 0;
  /// Labels of sample `index` of a part that are not below 0.
  virtual std::int64_t counted_labels(bool evaluation, std::int64_t index) const = 0;
  virtual void copy(bool evaluation, std::int64_t index, const BatchRows& to) const = 0;
};

/// How tokens become samples.
enum class TokenCut : std::uint8_t { kStream, kDocuments };

class TokenData final : public TrainingData {
 public:
  /// BadInputError if there are too few tokens for one sample of `seq` in each part.
  TokenData(TokenFile file, std::int64_t seq, TokenCut cut = TokenCut::kStream);

  std::int64_t samples(bool evaluation) const override;
  std::int64_t counted_labels(bool evaluation, std::int64_t index) const override;
  void copy(bool evaluation, std::int64_t index, const BatchRows& to) const override;

  std::int64_t vocabulary() const { return file_.vocabulary; }

 private:
  struct Sample {
    std::int64_t first = 0;    ///< token
    std::int64_t counted = 0;  ///< labels
  };
  void add_samples(std::int64_t first, std::int64_t end, bool padded);
  const Sample& sample(bool evaluation, std::int64_t index) const;

  TokenFile file_;
  std::int64_t seq_;
  std::vector<Sample> samples_;  ///< those to train on, then those to evaluate
  std::int64_t training_samples_ = 0;
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
