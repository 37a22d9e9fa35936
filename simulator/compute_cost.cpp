#include "simulator/compute_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/work_cost.h"
#include "simulator/efficiency.h"

namespace lockstep::sim {
namespace {

/// Peak of matrix products in this type; fp32 units where the device has none of its own.
double peak(const DeviceSpec& device, DType dtype, bool tf32) {
  double rate = device.fp32_flops;
  switch (dtype) {
    case DType::kFp64:
      rate = device.fp64_flops;
      break;
    case DType::kBf16:
      rate = device.bf16_flops;
      break;
    case DType::kFp16:
      rate = device.fp16_flops;
      break;
    default:
      rate = tf32 && device.tf32_flops > 0 ? device.tf32_flops : device.fp32_flops;
      break;
  }
  return (rate > 0 ? rate : std::max(device.fp32_flops, 1.0)) * device.matmul_fraction;
}

struct Tile {
  double rows;
  double columns;
};
// Tiles of the output that one multiprocessor works on (CUTLASS: default threadblock shapes).
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};

double ceil_of(double value) {
  return static_cast<double>(static_cast<std::int64_t>(value) +
                             (value > static_cast<double>(static_cast<std::int64_t>(value))));
}

/// Multiply-adds that the device has time for while it computes the product: those of all tiles of
/// all waves, with the depth in which a tile fills its pipeline and writes its result. The library
/// takes the tile that is fastest; a small one loads more operands per result.
double occupied_flops(const WorkCost& cost, double multiprocessors) {
  const auto m = static_cast<double>(cost.m);
  const auto n = static_cast<double>(cost.n);
  const auto k = static_cast<double>(cost.k);
  const auto batch = static_cast<double>(cost.batch);
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double area = tile.rows * tile.columns;
    const double tiles = ceil_of(m / tile.rows) * ceil_of(n / tile.columns) * batch;
    // With fewer tiles than multiprocessors, several share a tile and split its depth.
    const double split =
        std::clamp(std::floor(multiprocessors / tiles), 1.0, std::max(1.0, k / kLeastSplitDepth));
    const double waves = ceil_of(tiles * split / multiprocessors);
    const double loads = 1 + kTileLoad * (1 / tile.rows + 1 / tile.columns - 1.0 / 256 - 1.0 / 128);
    const double flops = 2 * waves * multiprocessors * area * (k / split + kTileDepth) * loads;
    best = best == 0 ? flops : std::min(best, flops);
  }
  return best;
}

/// Seconds of arithmetic at the rate of the best product.
double product_seconds(const DeviceSpec& device, const WorkCost& cost, double rate) {
  const double flops = device.multiprocessors > 1
                           ? occupied_flops(cost, static_cast<double>(device.multiprocessors))
                           : cost.flops;
  return flops / rate;
}

/// Causal kernels skip the tiles above the diagonal: a half, and half a tile per row.
double flash_seconds(const WorkCost& cost, double rate, bool gradient) {
  const double skipped = 0.5 * (1 + kFlashTile / (static_cast<double>(cost.m) + kFlashTile));
  return cost.flops * skipped / (rate * (gradient ? kFlashBackward : kFlashForward));
}

bool is_product(Work work) {
  return work == Work::kMatmul || work == Work::kMatmulGradInput || work == Work::kMatmulGradWeight;
}

/// Batched products and the passes of softmax between them, which cross device memory.
double plain_attention_seconds(const DeviceSpec& device,
                               const WorkCost& cost,
                               double rate,
                               double size,
                               double bandwidth,
                               bool gradient) {
  WorkCost scores = cost;
  scores.flops = cost.flops / (gradient ? 4 : 2);
  WorkCost values = scores;
  std::swap(values.n, values.k);
  const double products =
      (product_seconds(device, scores, rate) + product_seconds(device, values, rate)) *
      (gradient ? 2 : 1);
  const double passes = gradient ? kSoftmaxGradPasses : kSoftmaxPasses;
  const double bytes = static_cast<double>(cost.batch) * static_cast<double>(cost.m) *
                       static_cast<double>(cost.n) * size * passes;
  return products + bytes / bandwidth;
}

}  // namespace

ComputeCost compute_cost(
    const DeviceSpec& device, Work work, const Shape& shape, DType dtype, bool tf32) {
  const WorkCost work_cost = lockstep::work_cost(work, shape, dtype);
  const double rate = peak(device, dtype, tf32);
  const double bandwidth = device.memory_bandwidth * kMemoryEfficiency;
  const double moving = work_cost.bytes / bandwidth;
  const auto size = static_cast<double>(size_of(dtype));
  double computing = 0;
  if (is_product(work)) {
    computing = product_seconds(device, work_cost, rate);
  } else if (work == Work::kFlashAttention || work == Work::kFlashAttentionGrad) {
    computing = flash_seconds(work_cost, rate, work == Work::kFlashAttentionGrad);
  } else if (work == Work::kAttention || work == Work::kAttentionGrad) {
    computing = plain_attention_seconds(
        device, work_cost, rate, size, bandwidth, work == Work::kAttentionGrad);
  }
  ComputeCost cost;
  cost.flops = work_cost.flops;
  cost.bytes = work_cost.bytes;
  cost.compute_bound = computing > moving;
  cost.seconds = std::max(computing, moving) + kKernelFloor * device.launch_overhead_s;
  const double ideal = cost.compute_bound ? cost.flops / (rate / device.matmul_fraction)
                                          : cost.bytes / device.memory_bandwidth;
  cost.efficiency = cost.seconds > 0 ? ideal / cost.seconds : 0;
  return cost;
}

}  // namespace lockstep::sim
