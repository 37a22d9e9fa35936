#include "core/names.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace lockstep {
namespace {

constexpr NameRow<DType> kDTypes[] = {{DType::kFp64, "fp64"},
                                      {DType::kFp32, "fp32"},
                                      {DType::kBf16, "bf16"},
                                      {DType::kFp16, "fp16"},
                                      {DType::kInt64, "int64"},
                                      {DType::kInt32, "int32"},
                                      {DType::kUint8, "uint8"}};

constexpr NameRow<ModelFamily> kModelFamilies[] = {{ModelFamily::kTransformer, "transformer"},
                                                   {ModelFamily::kMlp, "mlp"}};

constexpr NameRow<NormKind> kNormKinds[] = {{NormKind::kLayerNorm, "layer_norm"},
                                            {NormKind::kRmsNorm, "rms_norm"}};

constexpr NameRow<ActivationKind> kActivationKinds[] = {{ActivationKind::kGelu, "gelu"},
                                                        {ActivationKind::kRelu, "relu"},
                                                        {ActivationKind::kSwiGlu, "swiglu"}};

constexpr NameRow<PositionKind> kPositionKinds[] = {{PositionKind::kNone, "none"},
                                                    {PositionKind::kLearned, "learned"},
                                                    {PositionKind::kRope, "rope"}};

constexpr NameRow<MlpNormKind> kMlpNormKinds[] = {{MlpNormKind::kNone, "none"},
                                                  {MlpNormKind::kBatchNorm, "batch_norm"},
                                                  {MlpNormKind::kSyncBatchNorm, "sync_batch_norm"}};

constexpr NameRow<LinkKind> kLinkKinds[] = {{LinkKind::kSharedMemory, "shared_memory"},
                                            {LinkKind::kPcie, "pcie"},
                                            {LinkKind::kNvlink, "nvlink"},
                                            {LinkKind::kNvswitch, "nvswitch"},
                                            {LinkKind::kNetwork, "network"}};

constexpr NameRow<Precision> kPrecisions[] = {{Precision::kFp64, "fp64"},
                                              {Precision::kFp32, "fp32"},
                                              {Precision::kTf32, "tf32"},
                                              {Precision::kBf16, "bf16"},
                                              {Precision::kFp16, "fp16"},
                                              {Precision::kAutocast, "autocast"}};

constexpr NameRow<OptimizerKind> kOptimizerKinds[] = {{OptimizerKind::kSgd, "sgd"},
                                                      {OptimizerKind::kMomentum, "momentum"},
                                                      {OptimizerKind::kAdamW, "adamw"},
                                                      {OptimizerKind::kAdamW8bit, "adamw8bit"},
                                                      {OptimizerKind::kAdamW, "adam"},
                                                      {OptimizerKind::kAdamW8bit, "adam8bit"}};

constexpr NameRow<OptimizerStateCreation> kOptimizerStateCreations[] = {
    {OptimizerStateCreation::kLazy, "lazy"}, {OptimizerStateCreation::kEager, "eager"}};

constexpr NameRow<Recompute> kRecomputes[] = {
    {Recompute::kNone, "none"}, {Recompute::kSelective, "selective"}, {Recompute::kFull, "full"}};

constexpr NameRow<AttentionKind> kAttentionKinds[] = {{AttentionKind::kPlain, "plain"},
                                                      {AttentionKind::kFlash, "flash"}};

constexpr NameRow<LossMean> kLossMeans[] = {{LossMean::kMeanOfMeans, "mean_of_means"},
                                            {LossMean::kGlobalTokens, "global_tokens"}};

constexpr NameRow<DataKind> kDataKinds[] = {{DataKind::kDp, "dp"},
                                            {DataKind::kDdp, "ddp"},
                                            {DataKind::kZero1, "zero1"},
                                            {DataKind::kZero2, "zero2"},
                                            {DataKind::kZero3, "zero3"},
                                            {DataKind::kFsdp, "fsdp"},
                                            {DataKind::kHsdp, "hsdp"}};

constexpr NameRow<ZeroFlavour> kZeroFlavours[] = {
    {ZeroFlavour::kPaper, "paper"},
    {ZeroFlavour::kMegatron, "megatron"},
    {ZeroFlavour::kDeepSpeed, "deepspeed"},
    {ZeroFlavour::kZeroRedundancyOptimizer, "zero_redundancy_optimizer"}};

constexpr NameRow<WrapPolicy> kWrapPolicies[] = {{WrapPolicy::kBlock, "block"},
                                                 {WrapPolicy::kRoot, "root"},
                                                 {WrapPolicy::kEveryModule, "every_module"}};

constexpr NameRow<Reshard> kReshards[] = {
    {Reshard::kOn, "on"}, {Reshard::kOff, "off"}, {Reshard::kGroup, "group"}};

std::array<NameRow<ScheduleKind>, kScheduleKindCount> schedule_rows() {
  std::array<NameRow<ScheduleKind>, kScheduleKindCount> rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto kind = static_cast<ScheduleKind>(i);
    rows[i] = {kind, name_of(kind)};  // schedule.h holds the spelling
  }
  return rows;
}

/// Case and the kind of dash are slips of the hand, not other words.
char folded(char c) {
  if (c >= 'A' && c <= 'Z') {
    return static_cast<char>(c - 'A' + 'a');
  }
  return c == '-' ? '_' : c;
}

/// Longer words are compared by their beginning: no valid name is as long.
constexpr std::size_t kComparedLength = 80;

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot be in parentheses
#define LOCKSTEP_NAME_TABLE(Enum, rows)               \
  template <>                                         \
  std::span<const NameRow<Enum>> name_table<Enum>() { \
    return rows;                                      \
  }

// NOLINTEND(bugprone-macro-parentheses)

LOCKSTEP_NAME_TABLE(DType, kDTypes)
LOCKSTEP_NAME_TABLE(ModelFamily, kModelFamilies)
LOCKSTEP_NAME_TABLE(NormKind, kNormKinds)
LOCKSTEP_NAME_TABLE(ActivationKind, kActivationKinds)
LOCKSTEP_NAME_TABLE(PositionKind, kPositionKinds)
LOCKSTEP_NAME_TABLE(MlpNormKind, kMlpNormKinds)
LOCKSTEP_NAME_TABLE(LinkKind, kLinkKinds)
LOCKSTEP_NAME_TABLE(Precision, kPrecisions)
LOCKSTEP_NAME_TABLE(OptimizerKind, kOptimizerKinds)
LOCKSTEP_NAME_TABLE(OptimizerStateCreation, kOptimizerStateCreations)
LOCKSTEP_NAME_TABLE(Recompute, kRecomputes)
LOCKSTEP_NAME_TABLE(AttentionKind, kAttentionKinds)
LOCKSTEP_NAME_TABLE(LossMean, kLossMeans)
LOCKSTEP_NAME_TABLE(DataKind, kDataKinds)
LOCKSTEP_NAME_TABLE(ZeroFlavour, kZeroFlavours)
LOCKSTEP_NAME_TABLE(WrapPolicy, kWrapPolicies)
LOCKSTEP_NAME_TABLE(Reshard, kReshards)

#undef LOCKSTEP_NAME_TABLE

template <>
std::span<const NameRow<ScheduleKind>> name_table<ScheduleKind>() {
  static const std::array<NameRow<ScheduleKind>, kScheduleKindCount> rows = schedule_rows();
  return rows;
}

std::string_view name_of(DType dtype) {
  return name_of<DType>(dtype);
}

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return folded(x) == folded(y);
  });
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  a = a.substr(0, kComparedLength);
  b = b.substr(0, kComparedLength);
  // rows[i % 3][j] = distance of the first i characters of a and the first j of b; a swap looks two
  // rows back.
  std::array<std::array<std::size_t, kComparedLength + 1>, 3> rows{};
  for (std::size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::array<std::size_t, kComparedLength + 1>& row = rows[i % 3];
    const std::array<std::size_t, kComparedLength + 1>& above = rows[(i - 1) % 3];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const char x = folded(a[i - 1]);
      const char y = folded(b[j - 1]);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0U : 1U)});
      if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2])) {
        row[j] = std::min(row[j], rows[(i - 2) % 3][j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::size_t slip_distance(std::string_view text, std::string_view candidate) {
  constexpr std::size_t kTelling = 3;
  const std::size_t distance = edit_distance(text, candidate);
  const bool beginning = text.size() >= kTelling && text.size() < candidate.size() &&
                         same_word(text, candidate.substr(0, text.size()));
  return beginning ? std::min<std::size_t>(distance, 1) : distance;
}

std::string nearest(std::string_view text, std::span<const std::string_view> candidates) {
  std::string_view best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = slip_distance(text, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return std::string(best);
}

std::string not_valid_message(std::string_view text, std::span<const std::string_view> candidates) {
  std::string list;
  for (const std::string_view candidate : candidates) {
    list += (list.empty() ? "" : ", ") + std::string(candidate);
  }
  return in_quotes(text) + " is not valid, nearest is \"" + nearest(text, candidates) +
         "\" (one of " + list + ")";
}

std::string printable(std::string_view text, std::size_t length) {
  std::string result;
  for (const char c : text.substr(0, length)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > length ? result + "..." : result;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 60;
  return '"' + printable(text, kShown) + '"';
}

}  // namespace lockstep
