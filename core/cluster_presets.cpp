#include "core/cluster_presets.h"

#include <cmath>
#include <utility>

#include "core/names.h"

namespace lockstep {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

// One hop in NCCL's own cost table (src/graph/tuning.cc, LL protocol), seconds.
constexpr double kNvlinkHop = 0.6e-6;
constexpr double kPcieHop = 1.0e-6;
constexpr double kNetworkHop = 2.7e-6;

// CUDA context and loaded kernels: 0.52 GiB measured on H100 (pith-train), 0.55 GiB
// (ml-engineering); no source tells the generations apart.
constexpr double kCudaContextGib = 0.52;

std::int64_t gib(double value) {
  return static_cast<std::int64_t>(std::llround(value * kGibibyte));
}

/// Peak dense rates of a data sheet, in TFLOP/s.
struct Peaks {
  double fp64 = 0;
  double fp32 = 0;
  double tf32 = 0;
  double bf16 = 0;
  double fp16 = 0;
  double fp8 = 0;
  std::int64_t multiprocessors = 1;
  double matmul = 0.8;  ///< fraction of bf16 (fp16) peak
  double watts = 0;
};

DeviceSpec gpu(const char* name, const Peaks& peaks, double memory_gib, double gigabytes_per_s) {
  DeviceSpec device;
  device.name = name;
  device.fp64_flops = peaks.fp64 * kTera;
  device.fp32_flops = peaks.fp32 * kTera;
  device.tf32_flops = peaks.tf32 * kTera;
  device.bf16_flops = peaks.bf16 * kTera;
  device.fp16_flops = peaks.fp16 * kTera;
  device.fp8_flops = peaks.fp8 * kTera;
  device.multiprocessors = peaks.multiprocessors;
  device.matmul_fraction = peaks.matmul;
  device.power_watts = peaks.watts;
  device.memory_bytes = gib(memory_gib);
  device.memory_bandwidth = gigabytes_per_s * kGiga;
  device.launch_overhead_s = 5e-6;
  device.context_bytes = gib(kCudaContextGib);
  return device;
}

LinkSpec nvswitch(double gigabytes_per_s) {
  return {LinkKind::kNvswitch, gigabytes_per_s * kGiga, kNvlinkHop};
}

/// PCIe x16 of generation 3 or 4: 16 or 32 GB/s in each direction before protocol overhead.
LinkSpec pcie(double gigabytes_per_s) {
  return {LinkKind::kPcie, gigabytes_per_s * kGiga, kPcieHop};
}

/// One card; network rates are given in bits.
LinkSpec network(double gigabits_per_s) {
  return {LinkKind::kNetwork, gigabits_per_s / 8 * kGiga, kNetworkHop};
}

ClusterSpec node(const char* name,
                 DeviceSpec device,
                 std::int64_t devices,
                 LinkSpec intra,
                 LinkSpec inter,
                 std::int64_t nics) {
  ClusterSpec cluster;
  cluster.name = name;
  cluster.device = std::move(device);
  cluster.devices_per_node = devices;
  cluster.intra_node = intra;
  cluster.inter_node = inter;
  cluster.nics_per_node = nics;
  cluster.sources = {
      "latency per hop: NCCL src/graph/tuning.cc, LL protocol",
      "context_bytes: 0.52 GiB measured on H100 (pith-train); 0.55 GiB (ml-engineering)",
      "multiprocessors: NVIDIA architecture white papers",
      "matmul_fraction: mamf-finder, TFLOP/s: A100 267.9, H100 792.1, L4 91.4",
      "matmul_fraction: RTX 4090 178.5 TFLOP/s, more than its data sheet (mag-/gpu_benchmark)",
      "matmul_fraction: B200 1745 TFLOP/s (stas00/ml-engineering); others: their family",
      "power_watts: data sheets, maximum of the module; GB300 1400 W (200 W more than GB200)",
      "attention_fraction: about 0.6, FlashAttention-2 (arXiv:2307.08691) figures 4 to 7 on A100",
      "attention_fraction: the same, FlashAttention-3 (arXiv:2407.08608) figure 5 on H100",
      "launch_overhead_s: 5 us, usual for one PyTorch operation; `lockstep calibrate` measures it"};
  return cluster;
}

ClusterPreset preset(ClusterSpec cluster,
                     std::vector<std::string> sources,
                     std::vector<std::string> aliases) {
  cluster.sources.insert(cluster.sources.begin(), sources.begin(), sources.end());
  return {std::move(cluster), std::move(aliases)};
}

std::string reported(const char* figure) {
  return "memory_bytes: " + std::string(figure) +
         " GiB, the total capacity in PyTorch's out-of-memory messages";
}

using Presets = std::vector<ClusterPreset>;

void add_volta(Presets& presets) {
  const Peaks peaks{7.8, 15.7, 0, 0, 125, 0, 80, 0.77, 300};  // no bf16, no tf32
  const std::string sheet = "FLOP/s, memory and NVLink rates: NVIDIA V100 data sheet (2020), SXM2";
  presets.push_back(
      preset(node("dgx1-v100-16gb",
                  gpu("V100-SXM2-16GB", peaks, 15.77, 900),
                  8,
                  {LinkKind::kNvlink, 150 * kGiga, kNvlinkHop},
                  network(100),
                  4),
             {sheet, reported("15.77"), "network: DGX-1 data sheet, 4x EDR InfiniBand 100 Gb/s"},
             {"v100", "v100-16gb", "dgx-1", "dgx1"}));
  presets.push_back(
      preset(node("dgx2-v100-32gb",
                  gpu("V100-SXM3-32GB", peaks, 31.73, 900),
                  16,
                  nvswitch(150),
                  network(100),
                  8),
             {sheet, reported("31.73"), "network: DGX-2 data sheet, 8x EDR InfiniBand 100 Gb/s"},
             {"v100-32gb", "dgx-2", "dgx2"}));
}

void add_ampere(Presets& presets) {
  const Peaks peaks{9.7, 19.5, 156, 312, 312, 0, 108, 0.859, 400};
  const std::string sheet =
      "FLOP/s (without sparsity), memory and NVLink rates: NVIDIA A100 data "
      "sheet (2021), SXM4";
  const std::string network_sheet = "network: DGX A100 data sheet, 8x HDR InfiniBand 200 Gb/s";
  presets.push_back(preset(node("dgx-a100-40gb",
                                gpu("A100-SXM4-40GB", peaks, 39.49, 1555),
                                8,
                                nvswitch(300),
                                network(200),
                                8),
                           {sheet, reported("39.49"), network_sheet},
                           {"a100-40gb"}));
  presets.push_back(preset(node("dgx-a100-80gb",
                                gpu("A100-SXM4-80GB", peaks, 79.15, 2039),
                                8,
                                nvswitch(300),
                                network(200),
                                8),
                           {sheet, reported("79.15"), network_sheet},
                           {"a100", "a100-80gb", "dgx-a100"}));
  presets.push_back(preset(node("a800-80gb",
                                gpu("A800-SXM4-80GB", peaks, 79.15, 2039),
                                8,
                                nvswitch(200),
                                network(200),
                                8),
                           {sheet + "; A800: NVLink 400 GB/s in both directions together",
                            reported("79.15"),
                            "network: assumed as in DGX A100"},
                           {"a800"}));
}

void add_hopper(Presets& presets) {
  const Peaks peaks{33.5, 66.9, 494.7, 989.4, 989.4, 1978.9, 132, 0.801, 700};
  const std::string sheet =
      "FLOP/s (without sparsity): NVIDIA H100 architecture white paper (2022), "
      "SXM5; NVLink 900 GB/s in both directions together";
  const std::string network_sheet = "network: DGX H100 data sheet, 8x NDR InfiniBand 400 Gb/s";
  presets.push_back(preset(
      node(
          "dgx-h100", gpu("H100-SXM5-80GB", peaks, 79.18, 3350), 8, nvswitch(450), network(400), 8),
      {sheet, "memory_bandwidth: H100 data sheet, 3.35 TB/s", reported("79.18"), network_sheet},
      {"h100", "h100-80gb", "dgx-h100-80gb"}));
  const Peaks limited{33.5, 66.9, 456, 912, 912, 1824, 132, 0.801, 500};
  presets.push_back(
      preset(node("h100-96gb-500w",
                  gpu("H100-SXM5-96GB-HBM2e-500W", limited, 95.04, 2400),
                  8,
                  nvswitch(450),
                  network(400),
                  8),
             {"FLOP/s: the TorchTitan paper (2024) says only that the peak lies between "
              "H100 NVL (835) and SXM (989 TFLOP/s bf16); the middle is used",
              "memory: 96 GB HBM2e at 2.4 TB/s, 500 W: TorchTitan performance notes, "
              "whose logs report 95.04 GiB",
              "network: TorchTitan performance notes, 400 Gb/s RDMA per GPU"},
             {"h100-96gb", "h100-500w", "h100-hbm2e"}));
  presets.push_back(preset(
      node("h200", gpu("H200-SXM-141GB", peaks, 139.80, 4800), 8, nvswitch(450), network(400), 8),
      {sheet + "; H200 computes as H100",
       "memory_bandwidth: H200 data sheet, 4.8 TB/s",
       reported("139.80"),
       "network: DGX H200 data sheet, 8x NDR InfiniBand 400 Gb/s"},
      {"dgx-h200", "h200-141gb"}));
  const Peaks h20{1, 44, 74, 148, 148, 296, 78, 0.801, 400};
  presets.push_back(
      preset(node("h20", gpu("H20-SXM-96GB", h20, 95.1, 4000), 8, nvswitch(450), network(400), 8),
             {"FLOP/s (without sparsity), memory and NVLink rates: HGX H20 data sheet as quoted by "
              "vendors (148 TFLOP/s bf16, 4.0 TB/s, 900 GB/s, 400 W)",
              "matmul_fraction: as H100, the only Hopper device that was measured",
              reported("95.1"),
              "network: assumed as in DGX H100"},
             {"h20-96gb", "hgx-h20"}));
}

void add_blackwell(Presets& presets) {
  const Peaks b200{37, 75, 1125, 2250, 2250, 4500, 148, 0.776, 1000};
  presets.push_back(preset(
      node("b200", gpu("B200-SXM-180GB", b200, 178.35, 8000), 8, nvswitch(900), network(400), 8),
      {"FLOP/s (half of the sparse figures): HGX B200 data sheet; NVLink 1.8 TB/s in both "
       "directions together; memory 8 TB/s",
       reported("178.35"),
       "network: DGX B200 data sheet, 8x 400 Gb/s"},
      {"dgx-b200", "hgx-b200"}));
  const std::string domain = "a node here is the NVLink domain of 18 trays with 4 devices each";
  const Peaks gb200{40, 80, 1250, 2500, 2500, 5000, 148, 0.776, 1200};
  presets.push_back(
      preset(node("gb200-nvl72",
                  gpu("GB200-186GB", gb200, 184.31, 8000),
                  72,
                  nvswitch(900),
                  network(400),
                  72),
             {"FLOP/s (half of the sparse figures), memory and NVLink rates: NVIDIA GB200 NVL72 "
              "data sheet, divided by 72",
              reported("184.31"),
              "network: GB200 NVL72 data sheet, one ConnectX-7 400 Gb/s per device",
              domain},
             {"gb200", "nvl72"}));
  const Peaks gb300{1.3, 80, 1250, 2500, 2500, 5000, 148, 0.776, 1400};
  presets.push_back(preset(node("gb300-nvl72",
                                gpu("GB300-288GB", gb300, 276.5, 8000),
                                72,
                                nvswitch(900),
                                network(800),
                                72),
                           {"FLOP/s (half of the sparse figures), memory and NVLink rates: NVIDIA "
                            "GB300 NVL72 data sheet, divided by 72",
                            reported("276.5"),
                            "network: GB300 NVL72 data sheet, one ConnectX-8 800 Gb/s per device",
                            domain},
                           {"gb300"}));
}

void add_pcie(Presets& presets) {
  const std::string slot = "intra_node: PCIe 4.0 x16, 32 GB/s in each direction, through the host";
  presets.push_back(
      preset(node("a10g-pcie",
                  gpu("A10G-24GB", {0.49, 31.2, 35, 70, 70, 0, 80, 0.8, 300}, 22.05, 600),
                  4,
                  pcie(32),
                  network(40),
                  1),
             {"FLOP/s (without sparsity) and memory rate: NVIDIA A10G data sheet (AWS "
              "g5 instances)",
              reported("22.05"),
              slot,
              "network: AWS g5.12xlarge, 40 Gb/s"},
             {"a10g", "g5"}));
  presets.push_back(
      preset(node("l4-pcie",
                  gpu("L4-24GB", {0.47, 30.3, 60, 121, 121, 242, 58, 0.756, 72}, 22.03, 300),
                  4,
                  pcie(32),
                  network(50),
                  1),
             {"FLOP/s (half of the sparse figures) and memory rate: NVIDIA L4 data sheet",
              reported("22.03"),
              slot,
              "network: Google Cloud g2-standard-48, 50 Gb/s"},
             {"l4", "g2"}));
  presets.push_back(preset(
      node("rtx4090-pcie",
           gpu("RTX4090-24GB", {1.29, 82.6, 82.6, 165.2, 165.2, 330.3, 128, 1.0, 450}, 23.64, 1008),
           8,
           pcie(32),
           network(100),
           1),
      {"FLOP/s (without sparsity, fp32 accumulation) and memory rate: NVIDIA Ada "
       "architecture white paper (2022), appendix A",
       reported("23.64"),
       slot + " (peer-to-peer copies are disabled on this card)",
       "network: assumed, one 100 Gb/s card"},
      {"rtx4090", "4090"}));
}

/// ClusterSpec's defaults: eight ranks of a laptop, each with a core and an eighth of the rest.
void add_laptop(Presets& presets) {
  ClusterSpec laptop;
  laptop.sources = {
      "assumed machine: 8 cores at 3.0 GHz with AVX2 (2 FMA of 8 floats per cycle = 96 GFLOP/s per "
      "core; bf16 and fp16 computed in fp32), 16 GiB DDR4-3200 in two channels (51.2 GB/s); a "
      "device is one core with an eighth of the memory and of its bandwidth",
      "intra_node: a copy reads and writes that memory, so half of its bandwidth",
      "inter_node: gigabit Ethernet over TCP",
      "run `lockstep calibrate` for the machine you have"};
  presets.push_back({laptop, {"laptop", "cpu"}});
}

Presets all_presets() {
  Presets presets;
  add_laptop(presets);
  add_pcie(presets);
  add_volta(presets);
  add_ampere(presets);
  add_hopper(presets);
  add_blackwell(presets);
  return presets;
}

}  // namespace

const std::vector<ClusterPreset>& cluster_presets() {
  static const Presets presets = all_presets();
  return presets;
}

std::optional<ClusterSpec> find_cluster_preset(std::string_view name) {
  for (const ClusterPreset& preset : cluster_presets()) {
    if (same_word(preset.cluster.name, name)) {
      return preset.cluster;
    }
    for (const std::string& alias : preset.aliases) {
      if (same_word(alias, name)) {
        return preset.cluster;
      }
    }
  }
  return std::nullopt;
}

std::string unknown_cluster_message(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ClusterPreset& preset : cluster_presets()) {
    names.push_back(preset.cluster.name);
  }
  return not_valid_message(name, names);
}

}  // namespace lockstep
