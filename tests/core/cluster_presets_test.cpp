#include "core/cluster_presets.h"

#include <cctype>
#include <set>

#include "tests/support/catch.h"

using namespace lockstep;

TEST_CASE("Every cluster preset is valid, one node, and says where its figures come from") {
  for (const ClusterPreset& preset : cluster_presets()) {
    INFO(preset.cluster.name);
    Problems problems;
    validate(preset.cluster, problems);
    CHECK(problems.one_line() == "");
    CHECK(preset.cluster.nodes == 1);
    CHECK(preset.cluster.sources.size() >= 3);
  }
}

TEST_CASE("No two cluster presets share a name or an alias") {
  std::set<std::string> names;
  for (const ClusterPreset& preset : cluster_presets()) {
    CHECK(names.insert(preset.cluster.name).second);
    for (const std::string& alias : preset.aliases) {
      INFO(alias);
      CHECK(names.insert(alias).second);
    }
  }
}

TEST_CASE("The machines that people name are there") {
  for (const char* name : {"dgx-a100-40gb",
                           "dgx-a100-80gb",
                           "dgx-h100",
                           "h100-96gb-500w",
                           "h200",
                           "b200",
                           "gb200-nvl72",
                           "gb300-nvl72",
                           "a800",
                           "h20",
                           "v100-16gb",
                           "v100-32gb",
                           "a10g",
                           "l4",
                           "rtx4090",
                           "cpu-laptop",
                           "DGX_H100"}) {
    INFO(name);
    CHECK(find_cluster_preset(name).has_value());
  }
  CHECK_FALSE(find_cluster_preset("dgx-h1000").has_value());
  CHECK(unknown_cluster_message("dgx-h1000").find("nearest is \"dgx-h100\"") != std::string::npos);
}

TEST_CASE("A device has no more usable memory than its name promises") {
  struct Row {
    const char* name;
    double gigabytes;
  };
  // Capacities on the data sheets; makers count 10^9 or 2^30, so 2^30 bounds both.
  const Row rows[] = {{"dgx-a100-40gb", 40},
                      {"dgx-a100-80gb", 80},
                      {"dgx-h100", 80},
                      {"h100-96gb", 96},
                      {"h200", 141},
                      {"b200", 180},
                      {"gb200", 186},
                      {"gb300", 288},
                      {"h20", 96},
                      {"v100-16gb", 16},
                      {"v100-32gb", 32},
                      {"a10g", 24},
                      {"l4", 24},
                      {"rtx4090", 24}};
  for (const Row& row : rows) {
    INFO(row.name);
    const double gib = static_cast<double>(find_cluster_preset(row.name)->device.memory_bytes) /
                       (1024.0 * 1024.0 * 1024.0);
    CHECK(gib <= row.gigabytes);
    CHECK(gib >= row.gigabytes * 0.91);
  }
}

TEST_CASE("Published bf16 peaks: 312 on A100, 989 on H100, 125 in fp16 on V100") {
  CHECK(find_cluster_preset("dgx-a100-80gb")->device.bf16_flops == Approx(312e12));
  CHECK(find_cluster_preset("dgx-h100")->device.bf16_flops == Approx(989.4e12));
  CHECK(find_cluster_preset("v100-32gb")->device.fp16_flops == Approx(125e12));
  CHECK(find_cluster_preset("v100-32gb")->device.bf16_flops == 0);
  CHECK(find_cluster_preset("gb200")->device.bf16_flops == Approx(2500e12));
}

TEST_CASE("Links run one way: half of the NVLink total, an eighth of network bits") {
  CHECK(find_cluster_preset("dgx-h100")->intra_node.bandwidth == Approx(900e9 / 2));
  CHECK(find_cluster_preset("dgx-h100")->inter_node.bandwidth == Approx(400e9 / 8));
  CHECK(find_cluster_preset("a800")->intra_node.bandwidth == Approx(400e9 / 2));
  CHECK(find_cluster_preset("gb200")->devices_per_node == 72);
}

TEST_CASE("The laptop preset is what a scenario without a cluster describes") {
  const ClusterSpec laptop = *find_cluster_preset("laptop");
  const ClusterSpec defaults;
  CHECK(laptop.name == defaults.name);
  CHECK(laptop.device.memory_bytes == defaults.device.memory_bytes);
  // 8 cores x 3.0 GHz x 2 FMA units x 8 floats x 2 FLOP
  CHECK(8 * laptop.device.fp32_flops == Approx(8 * 3.0e9 * 2 * 8 * 2));
}
