// Plan: the one object that is simulated, executed, drawn and checked.
//
// A plan is a mesh, sections (initialise, one optimizer step in its variants, evaluate, save), one
// program per class of ranks and section, and tables shared by all programs. A program holds no
// rank number and no string: groups are axis masks, peers are pipeline coordinates, views carry
// `offset + coordinate(axis) * stride`, so ranks that do the same share one program. Immutable once
// built; core/planner/program_builder.h builds programs, core/operands.h documents what each work
// reads and writes, core/check/ checks plans.
//
// Rules every interpreter may rely on:
//   R1 program order = host issue order = memory accounting order (alloc and free count when
//   passed). R2 an operation starts when its stream predecessor, its dependencies and, for a
//   collective, all
//      members have arrived; a communicator is a queue too.
//   R3 all that crosses ranks is in the plan; metrics, counts and flags are marked `kControl`.
//   R4 interpreters read only these fields.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/layout.h"
#include "core/mesh.h"

namespace lockstep {

struct ModelGraph;

enum class OperationKind : std::uint8_t {
  kCompute,     ///< runs `work` on a device stream
  kCollective,  ///< runs `collective` over `communicator`
  kSend,        ///< to pipeline coordinate `peer`, matched by (source, destination, tag)
  kRecv,
  kCopy,   ///< between storages or devices
  kAlloc,  ///< begins the life of `buffer`
  kFree,   ///< ends it
  kHost,   ///< runs `work` on the host
};

enum class Collective : std::uint8_t {
  kAllReduce,
  kAllGather,
  kReduceScatter,
  kBroadcast,
  kReduce,
  kGather,
  kScatter,
  kAllToAll,
  kBarrier,
};

enum class Phase : std::uint8_t {
  kInit,
  kForward,
  kRecompute,
  kBackward,
  kBackwardInput,
  kBackwardWeight,
  kReduce,
  kClip,
  kOptimizer,
  kEvaluate,
  kSave,
};

/// Mathematical or memory steps; never a strategy. Operands of each: core/operands.h.
enum class Work : std::uint8_t {
  kNone,
  kEmbedding,
  kEmbeddingGrad,
  kPosition,
  kPositionGrad,
  kMatmul,
  kMatmulGradInput,
  kMatmulGradWeight,
  kBias,
  kBiasGrad,
  kNorm,
  kNormGrad,
  kRope,
  kRopeGrad,
  kAttention,
  kAttentionGrad,
  kFlashAttention,
  kFlashAttentionGrad,
  kGelu,
  kGeluGrad,
  kRelu,
  kReluGrad,
  kSwiGlu,
  kSwiGluGrad,
  kDropout,
  kDropoutGrad,
  kAdd,
  kScale,
  kZero,
  kCast,
  kPack,
  kUnpack,
  kBnSums,
  kBnApply,
  kBnGradSums,
  kBnGradApply,
  kRoute,
  kRouteGrad,
  kDispatch,
  kDispatchGrad,
  kCombine,
  kCombineGrad,
  kLossLocalMax,
  kLossLocalSums,
  kLossFinish,
  kUnscaleAndCheck,
  kSumSquares,
  kClipCoefficient,
  kScalerUpdate,
  kSgd,
  kMomentum,
  kAdamW,
  kAdamW8bit,
  kInitialize,
  kUsedMap,
  kLoadBatch,
  kCountTokens,
  kReadScalar,
  kDescribeModel,
  kExpectIssued,
  kWriteShard,
  kCommit,
};

enum class Stream : std::uint8_t {
  kCompute,
  kData,
  kDataReplica,
  kTensor,
  kPipeline,
  kCopy,
  kHost
};
inline constexpr int kStreamCount = 7;
enum class Reduction : std::uint8_t { kNone, kSum, kMax, kAverage };
enum class Issue : std::uint8_t { kInOrder, kWhenReady };
enum class Lifetime : std::uint8_t { kPersistent, kStep };
enum class Storage : std::uint8_t { kDevice, kPinned, kHost };

/// Memory categories, closed. Context, allocator and library memory lie outside the plan.
enum class Category : std::uint8_t {
  kParameter,
  kGatheredParameter,
  kGradient,
  kOptimizer,
  kActivation,
  kLogits,
  kCommunication,
  kInput,
  kTemporary,
};
inline constexpr int kCategoryCount = 9;

/// Bits of Operation::flags.
enum OperationFlag : std::uint16_t {
  kInPlace = 1,     ///< output views are input views
  kHostSync = 2,    ///< the host waits for the result
  kControl = 4,     ///< metrics, counts, flags: listed apart from the strategy's own traffic
  kAccumulate = 8,  ///< gradient outputs are added to what is there

};

inline constexpr std::uint32_t kNoBuffer = 0xffffffffU;
inline constexpr std::uint32_t kNoModule = 0xffffffffU;
inline constexpr std::uint16_t kNoLayout = 0xffffU;
inline constexpr std::int16_t kNoPeer = -1;
inline constexpr std::uint8_t kNoCommunicator = 0xffU;

/// This rank's part of a buffer: begins at offset + coordinate(axis) * stride, in elements.
struct View {
  std::uint32_t buffer = kNoBuffer;
  Axis axis = Axis::kNone;
  std::int64_t offset = 0;
  std::int64_t elements = 0;
  std::int64_t stride = 0;
};

/// A piece of memory by description. Ids are per class: a persistent buffer has one id in all
/// sections, ids of step buffers are used again after their free.
struct Buffer {
  Category category = Category::kTemporary;
  DType dtype = DType::kFp32;
  Lifetime lifetime = Lifetime::kStep;
  Storage storage = Storage::kDevice;
  std::uint16_t layout = kNoLayout;    ///< index into Plan::layouts: what the elements are
  std::int32_t parameter = -1;         ///< the one parameter it belongs to, or -1
  std::uint32_t alias_of = kNoBuffer;  ///< memory lent by another buffer (no bytes of its own)
  std::int64_t alias_offset = 0;       ///< elements of this dtype
  std::int64_t elements = 0;           ///< padded

  std::int64_t bytes() const { return alias_of == kNoBuffer ? elements * size_of(dtype) : 0; }
};

/// Up to six extents; meaning per work in core/operands.h. Shared by index.
struct Shape {
  std::int64_t extent[6] = {0, 0, 0, 0, 0, 0};
  bool operator==(const Shape&) const = default;
};

/// A group kind with a queue of its own. Ranks whose coordinates differ only on `axes` are members;
/// `pipeline_coordinates` (bit mask, when not 0) keeps those pipeline coordinates only.
struct Communicator {
  AxisMask axes = 0;
  std::uint64_t pipeline_coordinates = 0;
  bool control = false;
  bool operator==(const Communicator&) const = default;
};

/// A number that operations read: `value` when it is a constant of the plan, else its source says
/// who makes it, so that changing values never change the plan.
struct Scalar {
  enum class Source : std::uint8_t { kConstant, kHost, kOperation };
  enum class Meaning : std::uint8_t { kFactor, kLearningRate, kLossScale, kInverseTokens };
  Source source = Source::kConstant;
  Meaning meaning = Meaning::kFactor;
  std::int64_t numerator = 1;  ///< constants are exact fractions: 1/N is {1, N}
  std::int64_t denominator = 1;
  bool operator==(const Scalar&) const = default;
  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
};
inline constexpr std::uint16_t kNoScalar = 0xffffU;

/// One entry of a program. 64 bytes; operands and dependencies lie in the program's arrays.
struct Operation {
  OperationKind kind = OperationKind::kCompute;
  Work work = Work::kNone;
  Collective collective = Collective::kAllReduce;
  Phase phase = Phase::kForward;
  Stream stream = Stream::kCompute;
  std::uint8_t communicator = kNoCommunicator;  ///< index into Plan::communicators
  Reduction reduction = Reduction::kNone;
  DType dtype = DType::kFp32;
  Issue issue = Issue::kInOrder;
  std::uint8_t inputs = 0;   ///< views [first_view, first_view + inputs)
  std::uint8_t outputs = 0;  ///< then the outputs
  std::uint16_t flags = 0;
  std::int16_t microbatch = -1;
  std::int16_t peer = kNoPeer;       ///< pipeline coordinate (send, recv)
  std::int16_t root = -1;            ///< group-local index (broadcast, reduce, gather, scatter)
  std::uint16_t scalar = kNoScalar;  ///< factor applied to the result
  std::uint16_t layout = kNoLayout;  ///< pack, unpack, sum_squares: index into Plan::layouts
  std::uint16_t dependencies = 0;    ///< [first_dependency, first_dependency + dependencies)
  std::uint32_t module = kNoModule;  ///< index into ModelGraph::modules
  std::int64_t elements = 0;  ///< collective: elements each member contributes (all_gather: of one
                              ///< shard; reduce_scatter: of one shard; others: of the message)
  std::uint32_t shape = 0;    ///< index into Plan::shapes (0 = none)
  std::uint32_t tag = 0;      ///< send, recv
  std::uint32_t buffer = kNoBuffer;  ///< alloc, free: the buffer
  std::uint32_t guard = kNoBuffer;   ///< flag buffer: skipped when its value is not 0
  std::uint32_t first_view = 0;
  std::uint32_t first_dependency = 0;

  bool has(OperationFlag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(Operation) == 64);

/// One class's operations of one section, in host issue order.
struct Program {
  std::vector<Operation> operations;
  std::vector<View> views;
  std::vector<std::uint32_t> dependencies;  ///< indices of earlier operations

  std::span<const View> inputs_of(const Operation& op) const {
    return {views.data() + op.first_view, op.inputs};
  }
  std::span<const View> outputs_of(const Operation& op) const {
    return {views.data() + op.first_view + op.inputs, op.outputs};
  }
  std::span<const std::uint32_t> dependencies_of(const Operation& op) const {
    return {dependencies.data() + op.first_dependency, op.dependencies};
  }
};

enum class SectionKind : std::uint8_t { kInit, kStep, kEvaluate, kSave };

struct Section {
  SectionKind kind = SectionKind::kStep;
  std::int32_t variant = 0;       ///< of a step: which form (DDP's first iterations differ)
  std::vector<Program> programs;  ///< by class
};

struct Plan {
  Mesh mesh;
  std::shared_ptr<const ModelGraph> graph;
  /// Axes on which programs depend; class = mixed radix of those coordinates, outermost first.
  AxisMask class_axes = 0;
  std::vector<Section> sections;
  std::vector<std::vector<Buffer>> buffers;  ///< by class; one table for all its sections
  /// Step variant of iteration 0, 1, 2...; the last entry holds for all later iterations.
  std::vector<std::int32_t> variant_of_iteration;
  std::vector<Communicator> communicators;
  std::vector<Layout> layouts;
  std::vector<Shape> shapes;  ///< shapes[0] = none
  std::vector<Scalar> scalars;
  std::int32_t microbatches = 1;
  bool host_shared = false;  ///< all ranks are threads of one process (DataParallel)
  bool tf32 = false;         ///< fp32 matrix products may round their operands to tf32

  int class_count() const { return mesh.count(class_axes); }
  int class_of_rank(int rank) const { return mesh.index(class_axes, rank); }
  const Section* find(SectionKind kind, int variant = 0) const;
  /// The step section that iteration `iteration` (0-based) runs.
  const Section& step(int iteration) const;
  std::int64_t operation_count() const;
};

std::string_view name_of(OperationKind kind);
std::string_view name_of(Collective collective);
std::string_view name_of(Phase phase);
std::string_view name_of(Work work);
std::string_view name_of(Stream stream);
std::string_view name_of(Reduction reduction);
std::string_view name_of(Category category);
std::string_view name_of(SectionKind kind);

/// Members of the group of `rank` on `communicator`, in group order (ascending rank).
std::vector<int> members(const Mesh& mesh, const Communicator& communicator, int rank);
inline std::vector<int> members(const Plan& plan, const Communicator& communicator, int rank) {
  return members(plan.mesh, communicator, rank);
}

}  // namespace lockstep
