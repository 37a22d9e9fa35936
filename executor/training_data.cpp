#include "executor/training_data.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/files.h"

namespace lockstep::exec {
namespace {

constexpr std::int32_t kShardMagic = 20240520;
constexpr std::int32_t kShardVersion = 1;
constexpr std::size_t kShardHeader = 256 * sizeof(std::int32_t);
constexpr std::int64_t kByteVocabulary = 256;
constexpr std::int64_t kGpt2Vocabulary = 50257;
constexpr std::uint16_t kGpt2EndOfText = 50256;
constexpr std::int64_t kPadding = 0;  ///< any token: causal attention sees it from itself alone
constexpr std::int64_t kIgnoredLabel = -100;  // PyTorch's ignore_index

TokenFile shard_tokens(const std::string& path, const std::string& bytes) {
  std::int32_t header[3];
  std::memcpy(header, bytes.data(), sizeof(header));
  if (header[1] != kShardVersion || bytes.size() < kShardHeader) {
    throw BadInputError("data",
                        fmt::format("{}: token shard of version {} and {} bytes: version {} and a "
                                    "header of {} bytes are known",
                                    path,
                                    header[1],
                                    bytes.size(),
                                    kShardVersion,
                                    kShardHeader));
  }
  const std::size_t body = bytes.size() - kShardHeader;
  if (header[2] < 0 || body != static_cast<std::size_t>(header[2]) * sizeof(std::uint16_t)) {
    throw BadInputError(
        "data",
        fmt::format("{}: the header names {} tokens, {} bytes follow it (truncated?)",
                    path,
                    header[2],
                    body));
  }
  TokenFile file;
  file.document_end = {kGpt2EndOfText};
  file.tokens.resize(static_cast<std::size_t>(header[2]));
  std::memcpy(file.tokens.data(), bytes.data() + kShardHeader, body);
  for (std::size_t i = 0; i < file.tokens.size(); ++i) {
    if (file.tokens[i] >= kGpt2Vocabulary) {
      throw BadInputError(
          "data",
          fmt::format("{}: token {} is {}, beyond GPT-2's vocabulary", path, i, file.tokens[i]));
    }
    file.vocabulary = std::max<std::int64_t>(file.vocabulary, file.tokens[i] + 1);
  }
  return file;
}

}  // namespace

TokenFile text_tokens(const std::string& text) {
  TokenFile file;
  file.vocabulary = kByteVocabulary;
  file.document_end = {'\n', '\n'};
  file.tokens.reserve(text.size());
  for (const char c : text) {
    file.tokens.push_back(static_cast<unsigned char>(c));
  }
  return file;
}

TokenFile read_tokens(const std::string& path) {
  const std::string bytes = read_whole(path, "data");
  std::int32_t magic = 0;
  if (bytes.size() >= 3 * sizeof(magic)) {
    std::memcpy(&magic, bytes.data(), sizeof(magic));
  }
  TokenFile file = magic == kShardMagic ? shard_tokens(path, bytes) : text_tokens(bytes);
  file.source = path;
  return file;
}

TokenData::TokenData(TokenFile file, std::int64_t seq, TokenCut cut)
    : file_(std::move(file)), seq_(seq) {
  const auto tokens = static_cast<std::int64_t>(file_.tokens.size());
  if (cut == TokenCut::kStream) {
    add_samples(0, tokens, false);
  } else {
    const auto& mark = file_.document_end;
    auto begin = file_.tokens.begin();
    while (begin != file_.tokens.end()) {
      const auto found = std::search(begin, file_.tokens.end(), mark.begin(), mark.end());
      const auto end =
          found == file_.tokens.end() ? found : found + static_cast<std::ptrdiff_t>(mark.size());
      add_samples(begin - file_.tokens.begin(), end - file_.tokens.begin(), true);
      begin = end;
    }
  }
  const auto all = static_cast<std::int64_t>(samples_.size());
  training_samples_ = all - std::max<std::int64_t>(all / 10, 1);
  if (training_samples_ < 1) {
    throw BadInputError(
        "data",
        cut == TokenCut::kDocuments
            ? fmt::format("{}: {} tokens have {} documents: one to train on and one to "
                          "evaluate are the least",
                          file_.source,
                          tokens,
                          all)
            : fmt::format("{}: {} tokens are too few: a sample to train on and one to "
                          "evaluate need {}; a smaller --seq-len needs less",
                          file_.source,
                          tokens,
                          2 * seq + 1));
  }
}

/// Of tokens [first, end); the rest that is shorter than a sample is left out, or padded.
void TokenData::add_samples(std::int64_t first, std::int64_t end, bool padded) {
  const std::int64_t least = padded ? 1 : seq_;
  for (std::int64_t at = first; end - 1 - at >= least; at += seq_) {
    samples_.push_back({at, std::min(seq_, end - 1 - at)});
  }
}

std::int64_t TokenData::samples(bool evaluation) const {
  const auto all = static_cast<std::int64_t>(samples_.size());
  return evaluation ? all - training_samples_ : training_samples_;
}

const TokenData::Sample& TokenData::sample(bool evaluation, std::int64_t index) const {
  return samples_[static_cast<std::size_t>((evaluation ? training_samples_ : 0) + index)];
}

std::int64_t TokenData::counted_labels(bool evaluation, std::int64_t index) const {
  return sample(evaluation, index).counted;
}

void TokenData::copy(bool evaluation, std::int64_t index, const BatchRows& to) const {
  const Sample& from = sample(evaluation, index);
  for (std::int64_t i = 0; i < seq_; ++i) {
    const bool counts = i < from.counted;
    const auto at = static_cast<std::size_t>(from.first + i);
    if (to.inputs != nullptr) {
      to.inputs->as<std::int64_t>()[to.first + i] = counts ? file_.tokens[at] : kPadding;
    }
    if (to.labels != nullptr) {
      to.labels->as<std::int64_t>()[to.first + i] = counts ? file_.tokens[at + 1] : kIgnoredLabel;
    }
  }
}

SampleOrder::SampleOrder(const SamplerSpec& spec) : spec_(spec), length_(sampler_length(spec)) {
  if (length_ < 1) {
    throw BadInputError(
        "data",
        fmt::format("{} samples for {} ranks: every rank needs one", spec.samples, spec.replicas));
  }
}

std::int64_t SampleOrder::sample(std::int32_t rank, std::int64_t position) {
  const std::int64_t epoch = position / length_;
  const std::lock_guard lock(mutex_);
  std::vector<std::int64_t>& order = orders_[{epoch, rank}];
  if (order.empty()) {
    SamplerSpec spec = spec_;
    spec.epoch = static_cast<std::uint64_t>(epoch);
    sampler_indices(spec, rank, order);
    std::erase_if(orders_, [&](const auto& each) { return each.first.first + 1 < epoch; });
    return orders_[{epoch, rank}][static_cast<std::size_t>(position % length_)];
  }
  return order[static_cast<std::size_t>(position % length_)];
}

}  // namespace lockstep::exec
