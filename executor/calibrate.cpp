#include "executor/calibrate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <unistd.h>

#include "core/error.h"
#include "core/planner/planner.h"
#include "executor/local_communicator.h"
#include "executor/trial_run.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/attention.h"
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/matmul.h"

namespace lockstep::exec {
namespace {

namespace cpu = kernels::cpu;
using Work = std::function<void()>;

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

double wall_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double part) {
  std::sort(values.begin(), values.end());
  return values.empty()
             ? 0
             : values[static_cast<std::size_t>(part * static_cast<double>(values.size() - 1))];
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

/// Processor seconds of one call, the median over calls of at least kLeast each, for `budget`
/// seconds on the wall.
double time_calls(const Work& work, double budget) {
  constexpr double kLeast = 2e-4;  // well above what reading the clock costs
  constexpr std::size_t kFewest = 5;
  work();
  std::vector<double> times;
  int calls = 1;
  const double end = wall_seconds() + budget;
  while (times.size() < kFewest || wall_seconds() < end) {
    const double begin = thread_seconds();
    for (int i = 0; i < calls; ++i) {
      work();
    }
    const double took = thread_seconds() - begin;
    if (took < kLeast) {
      calls *= 2;
      continue;
    }
    times.push_back(took / calls);
  }
  return median(std::move(times));
}

/// The same on `threads` threads at once, each with work of its own: the median over threads.
double time_on_all(int threads, double budget, const std::function<Work()>& make_work) {
  std::vector<double> times(static_cast<std::size_t>(threads));
  std::vector<std::thread> running;
  running.reserve(times.size());
  for (double& time : times) {
    running.emplace_back([&] { time = time_calls(make_work(), budget); });
  }
  for (std::thread& thread : running) {
    thread.join();
  }
  return median(times);
}

template <typename T>
std::shared_ptr<std::vector<T>> filled(std::int64_t elements) {
  return std::make_shared<std::vector<T>>(static_cast<std::size_t>(elements), static_cast<T>(0.01));
}

// ---- kernels -----------------------------------------------------------------------------------

template <typename T>
Work product(std::int64_t m, std::int64_t n, std::int64_t k) {
  return [=, x = filled<T>(m * k), weight = filled<T>(n * k), y = filled<T>(m * n)] {
    cpu::matmul<T>(x->data(), weight->data(), nullptr, y->data(), {m, n, k, 0, 0});
  };
}

/// As of a layer of GPT-2's form: qkv of 128 tokens, then products of 64 to 1536 features.
constexpr std::int64_t kProducts[][3] = {{128, 128, 128},
                                         {1024, 256, 64},
                                         {1024, 64, 256},
                                         {2048, 384, 384},
                                         {2048, 1536, 384},
                                         {2048, 384, 1536}};

/// seq is a few tiles long, so that its causal half counts as in training.
constexpr cpu::AttentionShape kAttention{4, 256, {4, 4, 64}, 0};

Work attention() {
  const std::int64_t tokens = kAttention.batch * kAttention.seq;
  return [qkv = filled<float>(tokens * kAttention.heads.width()),
          y = filled<float>(tokens * kAttention.heads.query_width()),
          sums = filled<float>(kAttention.batch * kAttention.heads.heads * kAttention.seq),
          space = filled<float>(cpu::flash_workspace(kAttention))] {
    cpu::best<cpu::Attention<float>>().flash(
        qkv->data(), y->data(), sums->data(), space->data(), kAttention);
  };
}

/// Arrays as large as the activations that a layer reads and writes.
constexpr std::int64_t kStreamed = 1 << 20;

Work addition() {
  return
      [a = filled<float>(kStreamed), b = filled<float>(kStreamed), c = filled<float>(kStreamed)] {
        cpu::best<cpu::Elementwise<float>>().add(a->data(), b->data(), c->data(), kStreamed);
      };
}

Work gelu() {
  constexpr std::int64_t kElements = 1 << 18;
  return [x = filled<float>(kElements), y = filled<float>(kElements)] {
    cpu::best<cpu::Activation<float>>().gelu(x->data(), y->data(), kElements);
  };
}

// ---- interpreter -------------------------------------------------------------------------------

/// Processor seconds per operation of a model that computes almost nothing.
double launch_overhead() {
  Scenario scenario;
  scenario.model.layers = 2;
  scenario.model.hidden = scenario.model.intermediate = 8;
  scenario.model.heads = scenario.model.kv_heads = 1;
  scenario.model.head_dim = 8;
  scenario.model.vocab = 8;
  scenario.model.max_position = 4;
  scenario.training.seq_len = 4;
  scenario.training.precision = Precision::kFp64;  // without the larger library's fixed costs
  scenario = resolved(scenario);
  const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
  TrialOptions options;
  options.steps = 200;
  const TrialRun run = run_trial(scenario, plan, options);
  return run.processor_s / static_cast<double>(run.steps.front().tracks.front().spans.size());
}

// ---- transfers ---------------------------------------------------------------------------------

/// One transfer as all ranks make it together; a message goes there and back.
using Exchange = std::function<void(Communicator&, float* in, float* out)>;

/// `try_once` by every rank until `budget` is over: the ranks agree by a broadcast.
struct RankTimes {
  std::vector<double> wall;
  double processor = 0;
};

RankTimes exchange_times(Communicator& own,
                         const Exchange& exchange,
                         std::int64_t elements,
                         double budget) {
  std::vector<float> in(static_cast<std::size_t>(elements), 0.5F);
  std::vector<float> out(static_cast<std::size_t>(elements), 0.5F);
  constexpr int kBatch = 10;
  RankTimes times;
  const double end = wall_seconds() + budget;
  std::int32_t go = 1;
  int calls = 0;
  while (go != 0) {
    const double begin = thread_seconds();
    for (int i = 0; i < kBatch; ++i) {
      const double wall = wall_seconds();
      exchange(own, in.data(), out.data());
      times.wall.push_back(wall_seconds() - wall);
    }
    times.processor += thread_seconds() - begin;
    calls += kBatch;
    go = wall_seconds() < end ? 1 : 0;
    own.run({.collective = Collective::kBroadcast,
             .dtype = DType::kInt32,
             .peer = 0,
             .elements = 1,
             .in = &go,
             .out = &go});
    own.forget_issued();
  }
  times.processor /= calls;
  return times;
}

/// Small ones by the clock on the wall, which is where a wake-up shows; large ones by the processor
/// time of the copies.
double transfer_seconds(int ranks, std::int64_t bytes, const Exchange& exchange, double budget) {
  constexpr std::int64_t kSmall = 64 << 10;
  constexpr double kQuartile = 0.25;
  auto communicators = make_local_communicators(ranks, {});
  std::vector<RankTimes> times(communicators.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      times[rank] = exchange_times(*communicators[rank], exchange, bytes / 4, budget);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  if (bytes <= kSmall) {
    return quantile(times.front().wall, kQuartile);
  }
  double processor = 0;
  for (const RankTimes& each : times) {
    processor += each.processor;
  }
  return processor / ranks;
}

Exchange all_reduce(std::int64_t bytes) {
  return [n = bytes / 4](Communicator& own, float*, float* out) {
    own.run({.reduction = Reduction::kSum, .elements = n, .in = out, .out = out});
  };
}

Exchange all_gather(std::int64_t bytes, int ranks) {
  return [n = bytes / 4 / ranks](Communicator& own, float* in, float* out) {
    own.run({.collective = Collective::kAllGather, .elements = n, .in = in, .out = out});
  };
}

/// From member 0 to 1 and back: two messages, of which each end is busy with one.
Exchange ping_pong(std::int64_t bytes) {
  return [n = bytes / 4](Communicator& own, float* in, float* out) {
    Transfer send{.kind = OperationKind::kSend, .peer = 1, .elements = n, .in = in};
    Transfer recv{.kind = OperationKind::kRecv, .peer = 1, .elements = n, .out = out};
    send.peer = recv.peer = static_cast<std::int16_t>(1 - own.rank());
    own.run(own.rank() == 0 ? send : recv);
    own.run(own.rank() == 0 ? recv : send);
  };
}

void time_transfers(const CalibrateOptions& options, Calibration& result) {
  std::vector<int> groups{2};
  if (options.ranks > 2) {
    groups.push_back(options.ranks);
  }
  const double budget = options.seconds_each / 2;
  for (const std::int64_t bytes : {std::int64_t{1} << 10, std::int64_t{4} << 20}) {
    for (const int ranks : groups) {
      result.transfers.push_back(
          {"all_reduce", ranks, bytes, transfer_seconds(ranks, bytes, all_reduce(bytes), budget)});
      result.transfers.push_back(
          {"all_gather",
           ranks,
           bytes / ranks / 4 * ranks * 4,
           transfer_seconds(ranks, bytes, all_gather(bytes, ranks), budget)});
    }
    const double there_and_back = transfer_seconds(2, bytes, ping_pong(bytes), budget);
    result.transfers.push_back(
        {"send", 2, bytes, bytes <= (64 << 10) ? there_and_back / 2 : there_and_back});
  }
}

/// Products of one thread per rank, without and with all-reduces that another thread of the rank
/// makes meanwhile: processor time alone over processor time beside.
double speed_beside(int ranks, double budget) {
  constexpr std::int64_t kBytes = 1 << 20;
  const auto make_work = [] { return product<float>(1024, 256, 64); };
  const double alone = time_on_all(ranks, budget, make_work);
  double beside = 0;
  std::thread transfers([&] { transfer_seconds(ranks, kBytes, all_reduce(kBytes), budget); });
  beside = time_on_all(ranks, budget, make_work);
  transfers.join();
  return std::clamp(alone / beside, 0.01, 1.0);
}

/// The figures one after the other.
class Calibrator {
 public:
  explicit Calibrator(const CalibrateOptions& options) : options_(options) {}

  Calibration run() {
    result_.ranks = options_.ranks;
    result_.cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    result_.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
    products();
    begin("attention, streaming, special functions");
    const auto per_second = [&](double amount, const std::function<Work()>& make_work) {
      return amount / time_on_all(result_.ranks, options_.seconds_each, make_work);
    };
    constexpr double kPasses = 3;  // two arrays read, one written
    result_.memory_bandwidth = per_second(kPasses * 4 * kStreamed, addition);
    result_.special_rate = per_second(1 << 18, gelu);
    result_.attention_flops = attention_rate();
    begin("host time of an operation");
    result_.launch_overhead_s = launch_overhead();
    begin("all-reduce, all-gather and messages");
    time_transfers(options_, result_);
    fit_link(result_);
    begin("products beside all-reduces");
    result_.speed_beside = speed_beside(result_.ranks, options_.seconds_each);
    return std::move(result_);
  }

 private:
  void begin(const std::string& what) {
    if (options_.stop && options_.stop()) {
      throw InterruptedError("calibrate", "interrupted; nothing was written");
    }
    if (options_.begins) {
      options_.begins(what);
    }
  }

  void products() {
    for (const DType dtype : {DType::kFp32, DType::kFp64}) {
      for (const auto& [m, n, k] : kProducts) {
        begin(fmt::format("product {} x {} x {} in {}", m, n, k, name_of(dtype)));
        const std::int64_t rows = m;
        const std::int64_t columns = n;
        const std::int64_t depth = k;
        const double seconds = time_on_all(result_.ranks, options_.seconds_each, [=] {
          return dtype == DType::kFp32 ? product<float>(rows, columns, depth)
                                       : product<double>(rows, columns, depth);
        });
        result_.products.push_back(
            {dtype, m, n, k, 2 * static_cast<double>(m * n) * static_cast<double>(k) / seconds});
      }
    }
  }

  /// Of the products alone: the softmax's exponentials are counted at the rate of special
  /// functions.
  double attention_rate() const {
    constexpr double kTile = 128;  // as the simulator counts the tiles on the diagonal
    const auto seq = static_cast<double>(kAttention.seq);
    const double part = 0.5 * (1 + kTile / (seq + kTile));
    const double scores =
        part * seq * seq * static_cast<double>(kAttention.batch * kAttention.heads.heads);
    const double flops = scores * 4 * static_cast<double>(kAttention.heads.dim);
    const double seconds = time_on_all(result_.ranks, options_.seconds_each, attention);
    const double products = seconds - scores / result_.special_rate;
    return flops / std::max(products, 0.1 * seconds);
  }

  const CalibrateOptions& options_;
  Calibration result_;
};

std::vector<double> rates(const Calibration& calibration, DType dtype) {
  std::vector<double> found;
  for (const ProductRate& product : calibration.products) {
    if (product.dtype == dtype) {
      found.push_back(product.flops);
    }
  }
  return found;
}

}  // namespace

Calibration calibrate(const CalibrateOptions& options) {
  return Calibrator(options).run();
}

double median_rate(const Calibration& calibration, DType dtype) {
  return median(rates(calibration, dtype));
}

double best_rate(const Calibration& calibration, DType dtype) {
  return quantile(rates(calibration, dtype), 1);
}

void fit_link(Calibration& calibration) {
  constexpr std::int64_t kSmall = 64 << 10;
  double latency = 0;
  double bandwidth = 0;
  int small = 0;
  int large = 0;
  for (const TransferTime& transfer : calibration.transfers) {
    const double others = transfer.ranks - 1;
    const bool message = transfer.kind == "send";
    const double rounds = transfer.kind == "all_reduce" ? 2 : 1;
    if (transfer.bytes <= kSmall) {
      latency += std::log(transfer.seconds / (message ? 1 : rounds * others));
      ++small;
    } else {
      const double share = message ? 1 : rounds * others / transfer.ranks;
      bandwidth += std::log(share * static_cast<double>(transfer.bytes) / transfer.seconds);
      ++large;
    }
  }
  calibration.latency_s = small > 0 ? std::exp(latency / small) : 0;
  calibration.link_bandwidth = large > 0 ? std::exp(bandwidth / large) : 0;
}

ClusterSpec cluster_of(const Calibration& calibration, const std::string& when) {
  constexpr int kFewestDevices = 8;  // more ranks than cores run too, by turns
  ClusterSpec cluster;
  DeviceSpec& device = cluster.device;
  cluster.name = "calibrated";
  device.name = "cpu-core";
  const double best = best_rate(calibration, DType::kFp32);
  const double usual = median_rate(calibration, DType::kFp32);
  device.fp32_flops = best;
  device.matmul_fraction = usual / best;
  // One fraction serves all dtypes: this peak makes the usual fp64 product come out.
  device.fp64_flops = median_rate(calibration, DType::kFp64) / device.matmul_fraction;
  device.tf32_flops = device.bf16_flops = device.fp16_flops = 0;
  device.attention_fraction = std::min(1.0, calibration.attention_flops / best);
  device.special_rate = calibration.special_rate;
  device.memory_bandwidth = calibration.memory_bandwidth;
  device.launch_overhead_s = calibration.launch_overhead_s;
  device.speed_beside_communication = calibration.speed_beside;
  cluster.cores_per_node = calibration.cores;
  cluster.devices_per_node = std::max(calibration.cores, kFewestDevices);
  device.memory_bytes = calibration.memory_bytes / cluster.devices_per_node;
  cluster.intra_node = {LinkKind::kSharedMemory, calibration.link_bandwidth, calibration.latency_s};
  cluster.sources = {
      fmt::format("lockstep calibrate, {}: {} threads at once on {} cores",
                  when,
                  calibration.ranks,
                  calibration.cores),
      "fp32_flops: the best product of six shapes of layers, FLOP per second of processor time",
      "matmul_fraction: median of the six over the best; fp64_flops: the same in fp64 over it",
      "attention_fraction: fused attention, head_dim 64, seq 256, without its exponentials",
      "special_rate: GELU of 2^18 floats",
      "memory_bandwidth: a + b into c, 2^20 floats each, on all threads at once",
      "launch_overhead_s: processor time per operation of a training step of width 8",
      "intra_node: all-reduce, all-gather and messages in groups of 2 and of all, geometric means",
      "latency_s: 1 KiB, lower quartile on the wall; bandwidth: 4 MiB, processor time",
      "speed_beside_communication: time of a product alone over the same beside all-reduces",
      "cores_per_node: what sharing a core costs follows from it",
      "inter_node: not measured (the default of cpu-laptop)"};
  return cluster;
}

}  // namespace lockstep::exec
