#include "core/work_cost.h"

#include <utility>

namespace lockstep {
namespace {

constexpr double kLabelBytes = 8;      // token ids, labels and expert ids are int64
constexpr double kStatisticBytes = 4;  // row numbers (maximum, sum, mean, 1/deviation) are fp32

double product(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) * static_cast<double>(b);
}

/// A cast changes between 2 and 4 or 4 and 8 bytes; the operation names the result's type alone.
double cast_bytes(double size) {
  return size == 4 ? 6 : size == 2 ? 6 : 12;
}

/// Extents of one operation under the names of core/operands.h, and its costs by family.
class Costing {
 public:
  Costing(Work work, const Shape& shape, DType dtype)
      : work_(work), shape_(shape), size_(static_cast<double>(size_of(dtype))) {}

  WorkCost run() const;

 private:
  double extent(int i) const { return static_cast<double>(shape_.extent[i]); }
  /// Elements of an operand {m, width}; position has its width behind the table's rows.
  double rows() const { return extent(0); }
  double area() const { return product(shape_.extent[0], shape_.extent[1]); }
  WorkCost moves(double bytes) const { return {0, bytes, 0, 0, 0, 0}; }
  /// `operands` tensors of {m, width}, read or written.
  WorkCost passes(double operands) const { return moves(operands * area() * size_); }
  /// `operands` vectors of {n}.
  WorkCost streams(double operands) const { return moves(operands * extent(0) * size_); }

  WorkCost matmul() const;
  WorkCost embedding(bool gradient) const;
  WorkCost position(bool gradient) const;
  WorkCost norm(double operands) const;
  WorkCost attention() const;
  WorkCost batch_norm(double operands) const;
  WorkCost experts() const;
  WorkCost loss(double passes_over_logits, double row_numbers) const;
  WorkCost optimizer() const;
  WorkCost by_element() const;

  Work work_;
  const Shape& shape_;
  double size_;
};

/// 2mnk over all groups; weights of every group are read.
WorkCost Costing::matmul() const {
  const double m = extent(0);
  const double n = extent(1);
  const double k = extent(2);
  const std::int64_t groups = shape_.extent[3] > 0 ? shape_.extent[3] : 1;
  WorkCost cost;
  cost.flops = 2 * m * n * k;
  cost.bytes = size_ * (m * k + static_cast<double>(groups) * n * k + m * n);
  cost.batch = groups;
  cost.m = shape_.extent[0] / groups;
  cost.n = shape_.extent[1];
  cost.k = shape_.extent[2];
  if (work_ == Work::kMatmulGradInput) {
    std::swap(cost.n, cost.k);
  } else if (work_ == Work::kMatmulGradWeight) {
    const std::int64_t tokens = cost.m;
    cost.m = shape_.extent[1];
    cost.n = shape_.extent[2];
    cost.k = tokens;
  }
  return cost;
}

/// {m, rows, h}: a row is found and written per token; the gradient writes the whole table.
WorkCost Costing::embedding(bool gradient) const {
  const double y = product(shape_.extent[0], shape_.extent[2]) * size_;
  const double table = product(shape_.extent[1], shape_.extent[2]) * size_;
  return moves(kLabelBytes * rows() + y + (gradient ? table : y));
}

WorkCost Costing::position(bool gradient) const {
  const std::int64_t width = shape_.extent[2] > 0 ? shape_.extent[2] : shape_.extent[1];
  return moves((gradient ? 1 : 2) * product(shape_.extent[0], width) * size_);
}

WorkCost Costing::norm(double operands) const {
  return moves(operands * area() * size_ + 2 * extent(1) * size_ + 2 * kStatisticBytes * rows());
}

/// {batch, seq, a, k, dh}. Forward Q K^T and P V; backward dV, dP, dQ, dK, and for flash Q K^T
/// again (arXiv:2307.08691, section 4.1).
WorkCost Costing::attention() const {
  const bool gradient = work_ == Work::kAttentionGrad || work_ == Work::kFlashAttentionGrad;
  const bool flash = work_ == Work::kFlashAttention || work_ == Work::kFlashAttentionGrad;
  const double tokens = extent(0) * extent(1);
  const double y = tokens * extent(2) * extent(4) * size_;
  const double qkv = tokens * (extent(2) + 2 * extent(3)) * extent(4) * size_;
  const double scores = tokens * extent(2) * extent(1) * size_;
  const double lse = tokens * extent(2) * kStatisticBytes;
  const double products = gradient ? (flash ? 5 : 4) : 2;
  WorkCost cost;
  cost.flops = products * 2 * tokens * extent(2) * extent(1) * extent(4);
  // Backward reads dy, qkv and what was saved (flash: y and lse), and writes dqkv.
  cost.bytes =
      gradient ? y + 2 * qkv + (flash ? y + lse : scores) : qkv + y + (flash ? lse : scores);
  cost.m = cost.n = shape_.extent[1];
  cost.k = shape_.extent[4];
  cost.batch = shape_.extent[0] * shape_.extent[2];
  return cost;
}

WorkCost Costing::batch_norm(double operands) const {
  return moves(operands * area() * size_ + 4 * extent(1) * kStatisticBytes);
}

/// Routing {m, experts, top}; dispatch and combine {m, h, top}.
WorkCost Costing::experts() const {
  const double chosen = product(shape_.extent[0], shape_.extent[2]);
  const double ids = chosen * kLabelBytes;
  const double weights = chosen * size_;
  const double x = area() * size_;
  const double expert_rows = chosen * extent(1) * size_;
  switch (work_) {
    case Work::kRoute:
      return moves(x + weights + ids);
    case Work::kRouteGrad:
      return moves(2 * x + weights + ids);
    case Work::kDispatch:
    case Work::kDispatchGrad:
      return moves(x + ids + expert_rows);
    case Work::kCombine:
      return moves(expert_rows + weights + ids + x);
    default:  // kCombineGrad
      return moves(x + 2 * (expert_rows + weights) + ids);
  }
}

/// {m, local vocabulary, valid vocabulary}: passes over the logits, and numbers per row.
WorkCost Costing::loss(double passes_over_logits, double row_numbers) const {
  return moves(passes_over_logits * area() * size_ + row_numbers * rows() * size_ +
               (work_ == Work::kLossLocalMax ? 0 : kLabelBytes * rows()));
}

/// Parameter, gradient and states read; parameter and states written. 8-bit states are a byte each.
WorkCost Costing::optimizer() const {
  switch (work_) {
    case Work::kSgd:
      return streams(3);
    case Work::kMomentum:
      return streams(5);
    case Work::kAdamW8bit:
      return moves(extent(0) * (3 * size_ + 4));
    default:
      return streams(7);
  }
}

WorkCost Costing::run() const {
  switch (work_) {
    case Work::kMatmul:
    case Work::kMatmulGradInput:
    case Work::kMatmulGradWeight:
      return matmul();
    case Work::kAttention:
    case Work::kAttentionGrad:
    case Work::kFlashAttention:
    case Work::kFlashAttentionGrad:
      return attention();
    case Work::kEmbedding:
    case Work::kEmbeddingGrad:
      return embedding(work_ == Work::kEmbeddingGrad);
    case Work::kPosition:
    case Work::kPositionGrad:
      return position(work_ == Work::kPositionGrad);
    case Work::kNorm:
      return norm(2);
    case Work::kNormGrad:
      return norm(3);
    case Work::kBnSums:
      return batch_norm(1);
    case Work::kBnApply:
    case Work::kBnGradSums:
      return batch_norm(2);
    case Work::kBnGradApply:
      return batch_norm(3);
    case Work::kRoute:
    case Work::kRouteGrad:
    case Work::kDispatch:
    case Work::kDispatchGrad:
    case Work::kCombine:
    case Work::kCombineGrad:
      return experts();
    case Work::kLossLocalMax:
      return loss(1, 1);
    case Work::kLossLocalSums:
      return loss(1, 3);
    case Work::kLossFinish:
      return loss(2, 3);
    case Work::kSgd:
    case Work::kMomentum:
    case Work::kAdamW:
    case Work::kAdamW8bit:
      return optimizer();
    default:
      return by_element();
  }
}

/// What goes once over its operands, and what moves a number or nothing.
WorkCost Costing::by_element() const {
  switch (work_) {
    case Work::kRope:
    case Work::kRopeGrad:  // queries and keys in place
      return moves(2 * extent(0) * extent(1) * (extent(2) + extent(3)) * extent(4) * size_);
    case Work::kBiasGrad:
      return moves((area() + extent(1)) * size_);
    case Work::kBias:
    case Work::kGelu:
    case Work::kRelu:
      return passes(2);
    case Work::kGeluGrad:
    case Work::kReluGrad:
    case Work::kSwiGlu:  // 2f in, f out
      return passes(3);
    case Work::kSwiGluGrad:
      return passes(5);
    case Work::kDropout:
    case Work::kDropoutGrad:  // the mask has a byte per element
      return moves(area() * (2 * size_ + 1));
    case Work::kZero:
    case Work::kInitialize:
    case Work::kSumSquares:
    case Work::kWriteShard:
      return streams(1);
    case Work::kScale:
    case Work::kPack:
    case Work::kUnpack:
    case Work::kUnscaleAndCheck:
      return streams(2);
    case Work::kAdd:
      return streams(3);
    case Work::kCast:
      return moves(extent(0) * cast_bytes(size_));
    case Work::kLoadBatch:  // tokens and labels
      return moves(2 * kLabelBytes * area());
    case Work::kClipCoefficient:
    case Work::kScalerUpdate:
    case Work::kReadScalar:
    case Work::kCountTokens:
      return moves(kLabelBytes);
    default:  // kNone, kUsedMap, kDescribeModel, kExpectIssued, kCommit
      return {};
  }
}

}  // namespace

WorkCost work_cost(Work work, const Shape& shape, DType dtype) {
  return Costing(work, shape, dtype).run();
}

}  // namespace lockstep
