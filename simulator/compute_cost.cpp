#include "simulator/compute_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/work_cost.h"
#include "simulator/efficiency.h"

namespace lockstep::sim {
namespace {

/// FLOP/s of large matrix products in this type; fp32 units where the device has none of its own.
/// 16-bit products stay below what the power limit sustains.
double product_rate(const DeviceSpec& device,
                    DType dtype,
                    bool tf32,
                    const Efficiency& efficiency) {
  double rate = device.fp32_flops;
  bool narrow = false;
  switch (dtype) {
    case DType::kFp64:
      rate = device.fp64_flops;
      break;
    case DType::kBf16:
      rate = device.bf16_flops;
      narrow = rate > 0;
      break;
    case DType::kFp16:
      rate = device.fp16_flops;
      narrow = rate > 0;
      break;
    default:
      rate = tf32 && device.tf32_flops > 0 ? device.tf32_flops : device.fp32_flops;
      break;
  }
  rate = (rate > 0 ? rate : std::max(device.fp32_flops, 1.0)) * device.matmul_fraction;
  const bool limited = narrow && device.power_watts > 0;
  return limited ? std::min(rate, efficiency.flops_per_joule * device.power_watts) : rate;
}

struct Tile {
  double rows;
  double columns;
};
// Tiles of the output that one multiprocessor works on (CUTLASS: default threadblock shapes).
constexpr Tile kTiles[] = {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
constexpr double kLeastDepth = 64;  // of a part of a tile: one step of the tile's main loop

double ceil_of(double value) {
  const auto whole = static_cast<double>(static_cast<std::int64_t>(value));
  return whole < value ? whole + 1 : whole;
}

/// What the price of one operation is made of.
struct Rates {
  const DeviceSpec& device;
  const Efficiency& efficiency;
  double products;   ///< FLOP/s of large matrix products
  double bandwidth;  ///< byte/s of streaming kernels
  double size;       ///< bytes of an element
};

/// Seconds of all waves of tiles. The library takes the tile that is fastest; a small one loads
/// more operands per result. With fewer tiles than multiprocessors, several may share the depth of
/// one.
double wave_seconds(const WorkCost& cost, const Rates& rates) {
  const auto m = static_cast<double>(cost.m);
  const auto n = static_cast<double>(cost.n);
  const auto k = static_cast<double>(cost.k);
  const auto batch = static_cast<double>(cost.batch);
  const auto multiprocessors = static_cast<double>(rates.device.multiprocessors);
  const double seconds_per_element = rates.efficiency.tile_traffic * rates.size / rates.bandwidth;
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = ceil_of(m / tile.rows) * ceil_of(n / tile.columns) * batch;
    const double most = std::max(1.0, std::min(k / kLeastDepth, multiprocessors / tiles));
    const auto split = static_cast<double>(static_cast<std::int64_t>(most));
    const double waves = ceil_of(tiles * split / multiprocessors);
    const double loads =
        1 + rates.efficiency.tile_load * (1 / tile.rows + 1 / tile.columns - 1.0 / 256 - 1.0 / 128);
    const double depth =
        2 * tile.rows * tile.columns * k / split * multiprocessors / rates.products;
    const double write = tile.rows * tile.columns * multiprocessors * seconds_per_element;
    // Parts of one tile are added at the end: one more such time.
    const double seconds = waves * (depth * loads + write) + (split > 1 ? write : 0);
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

double product_seconds(const WorkCost& cost, const Rates& rates) {
  return rates.device.multiprocessors > 1 ? wave_seconds(cost, rates) : cost.flops / rates.products;
}

/// Causal kernels skip the tiles above the diagonal: a half, and half a tile per row.
double computed_part(const WorkCost& cost, const Efficiency& efficiency) {
  const double tile = efficiency.flash_tile;
  return 0.5 * (1 + tile / (static_cast<double>(cost.m) + tile));
}

double flash_seconds(const WorkCost& cost, const Rates& rates, bool gradient) {
  const double computed = computed_part(cost, rates.efficiency);
  const double fraction = rates.device.attention_fraction / rates.device.matmul_fraction;
  return cost.flops * computed /
         (rates.products * fraction * (gradient ? rates.efficiency.flash_backward : 1));
}

bool is_product(Work work) {
  return work == Work::kMatmul || work == Work::kMatmulGradInput || work == Work::kMatmulGradWeight;
}

/// One fused kernel reads and writes each operand once (multi-tensor optimizers, copies).
bool is_update(Work work) {
  return (work >= Work::kScale && work <= Work::kUnpack) ||
         (work >= Work::kUnscaleAndCheck && work <= Work::kInitialize);
}

/// Batched products and the passes of softmax between them, which cross device memory.
double plain_attention_seconds(const WorkCost& cost, const Rates& rates, bool gradient) {
  WorkCost scores = cost;
  scores.flops = cost.flops / (gradient ? 4 : 2);
  WorkCost values = scores;
  std::swap(values.n, values.k);
  const double products =
      (product_seconds(scores, rates) + product_seconds(values, rates)) * (gradient ? 2 : 1);
  const double passes = rates.efficiency.softmax_passes + (gradient ? 3 : 0);
  const double bytes = static_cast<double>(cost.batch) * static_cast<double>(cost.m) *
                       static_cast<double>(cost.n) * rates.size * passes;
  return products + bytes / rates.bandwidth;
}

/// Exponentials, tangents and random numbers: one per element of an activation, a logit, a mask, a
/// score; the derivative of a GELU takes a third more than its value.
double special_functions(Work work,
                         const WorkCost& cost,
                         const Shape& shape,
                         const Efficiency& efficiency) {
  const double area = static_cast<double>(shape.extent[0]) * static_cast<double>(shape.extent[1]);
  const double scores =
      static_cast<double>(cost.batch) * static_cast<double>(cost.m) * static_cast<double>(cost.n);
  switch (work) {
    case Work::kGelu:
    case Work::kSwiGlu:
    case Work::kDropout:
    case Work::kLossLocalSums:
    case Work::kLossFinish:
      return area;
    case Work::kGeluGrad:
    case Work::kSwiGluGrad:
      return area * 4 / 3;
    case Work::kFlashAttention:
    case Work::kFlashAttentionGrad:
      return scores * computed_part(cost, efficiency);
    case Work::kAttention:
      return scores;
    default:
      return 0;
  }
}

}  // namespace

ComputeCost compute_cost(const DeviceSpec& device,
                         Work work,
                         const Shape& shape,
                         DType dtype,
                         bool tf32,
                         const Efficiency& efficiency) {
  const WorkCost work_cost = lockstep::work_cost(work, shape, dtype);
  const Rates rates{device,
                    efficiency,
                    product_rate(device, dtype, tf32, efficiency),
                    device.memory_bandwidth * efficiency.memory_fraction,
                    static_cast<double>(size_of(dtype))};
  const bool whole = work_cost.flops > 0 || is_update(work);
  const double moving =
      work_cost.bytes * (whole ? 1 : efficiency.elementwise_passes) / rates.bandwidth;
  double computing = 0;
  if (is_product(work)) {
    computing = product_seconds(work_cost, rates);
  } else if (work == Work::kFlashAttention || work == Work::kFlashAttentionGrad) {
    computing = flash_seconds(work_cost, rates, work == Work::kFlashAttentionGrad);
  } else if (work == Work::kAttention || work == Work::kAttentionGrad) {
    computing = plain_attention_seconds(work_cost, rates, work == Work::kAttentionGrad);
  }
  // A core that evaluates exponentials does not multiply meanwhile.
  if (device.special_rate > 0) {
    computing += special_functions(work, work_cost, shape, efficiency) / device.special_rate;
  }
  ComputeCost cost;
  cost.flops = work_cost.flops;
  cost.bytes = work_cost.bytes;
  cost.compute_bound = computing > moving;
  cost.seconds = std::max(computing, moving) + efficiency.kernel_floor * device.launch_overhead_s;
  const double ideal = cost.compute_bound ? cost.flops / rates.products * device.matmul_fraction
                                          : cost.bytes / device.memory_bandwidth;
  cost.efficiency = cost.seconds > 0 ? ideal / cost.seconds : 0;
  return cost;
}

}  // namespace lockstep::sim
