// ModelGraph: the model as schedulable modules with their parameters and tensors.
//
// A model is a list of segments (embedding, blocks, head; or the layers of an MLP). Equal segments
// share one template: modules in forward order that read and write tensors of the segment. What a
// module saves for backward, how a tensor is cut by tensor parallelism and which gradients are
// partial sums are data here, so the planner emits forward and backward of every model by one rule.
//
// What it is not: an order in time (planner) or a cost (core/module_cost.h, simulator).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/model.h"
#include "core/training.h"

namespace lockstep {

enum class ModuleKind : std::uint8_t {
  kEmbedding,
  kPosition,
  kNorm,
  kLinear,
  kRope,
  kHeadNorm,
  kAttention,
  kActivation,
  kDropout,
  kResidual,
  kRouter,
  kDispatch,
  kCombine,
  kBatchNorm,
  kLoss,
};
std::string_view name_of(ModuleKind kind);

/// How a linear module is cut over tensor-parallel ranks (Megatron-LM, arXiv:1909.08053 section 3).
enum class LinearCut : std::uint8_t {
  kNone,
  kColumn,  ///< output features; input is whole, backward sums the input gradient over tp
  kRow,     ///< input features; forward sums the output over tp
};

/// Which elements of a tensor a tensor-parallel rank holds.
enum class Region : std::uint8_t {
  kTokens,     ///< tokens x width; with sequence parallelism tokens / t
  kAllTokens,  ///< tokens x width on every rank, whatever the strategy
  kWidth,      ///< tokens x (width / t)
  kScores,     ///< batch x (heads / t) x seq x seq
  kHeadRows,   ///< batch x (heads / t) x seq
  kVector,     ///< width elements, no token dimension (batch statistics)
};

enum class TensorType : std::uint8_t { kActivation, kFp32, kMask, kTokenIds };

struct TensorDef {
  std::string name;
  Region region = Region::kTokens;
  std::int64_t width = 0;
  std::int64_t per_token = 1;  ///< rows per token (expert rows: experts per token)
  TensorType type = TensorType::kActivation;
  bool statistic = false;  ///< small per-row numbers that the papers' closed forms leave out
  bool alias = false;      ///< written in place over its module's first input

  // Derived when the template is finished. Modules by index into SegmentTemplate::modules.
  std::int8_t storage = 0;            ///< tensor whose memory it is (itself unless an alias)
  std::int16_t last_reader = -1;      ///< last module whose forward reads or writes it
  std::int16_t first_saver = -1;      ///< first module whose backward reads it; -1 = not saved
  std::int16_t gradient_sources = 0;  ///< modules that add to its gradient
  bool saved() const { return first_saver >= 0; }
};

inline constexpr std::int8_t kNoTensor = -1;

/// A module of a template; tensors by index into SegmentTemplate::tensors, parameters by index
/// relative to the segment's first parameter (linear: weights first, then biases).
struct ModuleDef {
  ModuleKind kind = ModuleKind::kLinear;
  const char* name = "";
  LinearCut cut = LinearCut::kNone;
  std::vector<std::int8_t> inputs;
  std::vector<std::int8_t> outputs;
  std::vector<std::int16_t> parameters;
  std::int16_t weights = 0;   ///< of `parameters`, how many are weights (the rest are biases)
  std::int16_t groups = 1;    ///< linear: independent products (experts), tokens split among them
  bool saves_output = false;  ///< attention: backward reads the output (flash)
  std::vector<std::int8_t> saved;  ///< storage tensors that backward reads, derived
};

/// How tensor parallelism cuts a parameter.
enum class ParameterCut : std::uint8_t { kNone, kRows, kColumns };
/// When the gradient that one tensor-parallel rank computes is only a part of a sum over tp.
enum class PartialGradient : std::uint8_t { kNever, kWithSequenceParallel, kAlways };

struct ParameterDef {
  std::string suffix;
  std::int64_t rows = 0;     ///< dim 0, unpadded
  std::int64_t columns = 1;  ///< product of the other dims (1 for vectors)
  bool vector = false;       ///< one-dimensional (norm weights, biases): no weight decay
  bool vocabulary = false;   ///< rows are padded to a multiple of t
  ParameterCut cut = ParameterCut::kNone;
  PartialGradient partial = PartialGradient::kNever;
  bool tied = false;  ///< the same logical parameter as parameter 0 of the model
  /// Fused weights: rows of the parts (queries, keys, values) that tensor parallelism cuts each by
  /// itself, so that a rank's rows are its part of every one; empty = one part.
  std::vector<std::int64_t> parts = {};
};

struct SegmentTemplate {
  std::string name;
  std::vector<TensorDef> tensors;
  std::vector<ModuleDef> modules;
  std::vector<ParameterDef> parameters;  ///< in registration order
  std::int8_t input = kNoTensor;         ///< tensor handed over by the previous segment
  std::int8_t output = kNoTensor;        ///< tensor handed to the next one
};

struct Segment {
  std::int32_t form = 0;    ///< index into ModelGraph::templates
  std::int32_t layer = -1;  ///< block number, -1 for embedding and head
  std::int32_t first_module = 0;
  std::int32_t first_parameter = 0;
};

/// A parameter of the whole model.
struct ParameterRef {
  std::int32_t segment = 0;
  std::int32_t index = 0;  ///< into the template's parameters
};

struct ModelGraph {
  ModelSpec model;
  AttentionKind attention = AttentionKind::kFlash;
  bool dropout = false;
  std::vector<SegmentTemplate> templates;
  std::vector<Segment> segments;
  std::vector<ParameterRef> parameters;
  std::vector<std::int32_t> segment_of_module;

  std::int32_t module_count() const { return static_cast<std::int32_t>(segment_of_module.size()); }
  const SegmentTemplate& form(const Segment& segment) const {
    return templates[static_cast<std::size_t>(segment.form)];
  }
  const Segment& segment_of(std::uint32_t module) const {
    return segments[static_cast<std::size_t>(segment_of_module[module])];
  }
  const ModuleDef& module(std::uint32_t id) const;
  const ParameterDef& parameter(std::int32_t id) const;
  std::int32_t parameter_total() const { return static_cast<std::int32_t>(parameters.size()); }
  std::string parameter_name(std::int32_t id) const;   ///< "h.3.attn.qkv.weight"
  std::string module_name(std::uint32_t id) const;     ///< "h.3.attn.qkv"; "-" for kNoModule
  std::string segment_name(std::int32_t index) const;  ///< "h.3", "embedding", "head"
  /// Logical parameters: every element once, tied copies and padding not counted.
  std::int64_t parameter_count() const;
};

/// Sizes on one rank that tensor extents depend on.
struct LocalSizes {
  std::int64_t batch = 1;   ///< samples of a micro-batch
  std::int64_t seq = 1;     ///< tokens of a sample on this rank (divided by context degree)
  std::int64_t tensor = 1;  ///< t
  bool sequence_parallel = false;
  std::int64_t tokens() const { return batch * seq; }
  std::int64_t region_tokens() const { return sequence_parallel ? tokens() / tensor : tokens(); }
};

/// Elements of a tensor on one rank.
std::int64_t elements_of(const TensorDef& tensor, const ModelSpec& model, const LocalSizes& sizes);
/// Storage of a tensor.
DType dtype_of(TensorType type, const TrainingSpec& training);
/// Rows and columns of a parameter on one tensor-parallel rank (vocabulary rows padded).
std::int64_t local_rows(const ParameterDef& parameter, std::int64_t tensor);
std::int64_t local_columns(const ParameterDef& parameter, std::int64_t tensor);
/// Rows of tensor-parallel rank `coordinate` that are not padding of the vocabulary. Padding stands
/// last: the rank's logical rows begin at coordinate * local_rows.
std::int64_t valid_local_rows(const ParameterDef& parameter,
                              std::int64_t tensor,
                              std::int64_t coordinate);

/// Builds the graph of `model` as `training` runs it (attention kind, dropout).
std::shared_ptr<const ModelGraph> build_model_graph(const ModelSpec& model,
                                                    const TrainingSpec& training);

}  // namespace lockstep
