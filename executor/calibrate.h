// Calibrate: what this machine does for the `local` backend, measured on as many threads at once
// as there will be ranks, and put into a ClusterSpec.
//
// Rates are per second of processor time of the thread that works, not of the clock on the wall:
// what else the machine does at the moment of measuring is not in them. Latencies are the lower
// quartile of many tries. What a figure means, and how it was taken, goes into the cluster's
// sources.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/dtype.h"

namespace lockstep::exec {

/// One matrix product (m, n) = (m, k) (k, n), all threads at once.
struct ProductRate {
  DType dtype = DType::kFp32;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double flops = 0;  ///< FLOP/s of one thread
};

struct TransferTime {
  std::string kind;  ///< "all_reduce", "all_gather", "send"
  int ranks = 0;
  std::int64_t bytes = 0;  ///< of the whole tensor or message
  double seconds = 0;
};

struct Calibration {
  int ranks = 0;
  int cores = 0;
  std::int64_t memory_bytes = 0;  ///< of the machine
  std::vector<ProductRate> products;
  double attention_flops = 0;   ///< FLOP/s of fused attention's products, forward, fp32
  double memory_bandwidth = 0;  ///< byte/s of one thread while all stream
  double special_rate = 0;      ///< GELUs per second of one thread, fp32
  double launch_overhead_s = 0;
  std::vector<TransferTime> transfers;
  double latency_s = 0;       ///< of one hop
  double link_bandwidth = 0;  ///< byte/s of one rank
  double speed_beside = 1;    ///< of products while the same rank's all-reduces run, cores to spare
};

struct CalibrateOptions {
  int ranks = 2;
  double seconds_each = 0.25;                           ///< for one figure
  std::function<void(const std::string& what)> begins;  ///< told before each figure; may be empty
  std::function<bool()> stop;                           ///< asked before each; may be empty
};

/// InterruptedError when `stop` said so.
Calibration calibrate(const CalibrateOptions& options);

/// Median FLOP/s of the products in this dtype, and the best.
double median_rate(const Calibration& calibration, DType dtype);
double best_rate(const Calibration& calibration, DType dtype);

/// Latency per hop and bandwidth per rank that explain the transfers best: geometric means over
/// what each of them says by the formulas of the simulator's ring (hops x latency + share x bytes /
/// bandwidth).
void fit_link(Calibration& calibration);

/// The figures as a cluster; `when` goes into its sources.
ClusterSpec cluster_of(const Calibration& calibration, const std::string& when);

}  // namespace lockstep::exec
