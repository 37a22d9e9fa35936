#include "core/cluster.h"

#include <limits>

#include "core/limits.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::string problems_of(const ClusterSpec& cluster) {
  Problems problems;
  validate(cluster, problems);
  return problems.one_line();
}

}  // namespace

TEST_CASE("A cluster made of defaults is valid") {
  CHECK(problems_of(ClusterSpec{}) == "");
}

TEST_CASE("Rates are finite and positive, counts at least one") {
  ClusterSpec cluster;
  cluster.nodes = 0;
  cluster.device.memory_bytes = -5;
  cluster.device.memory_bandwidth = std::numeric_limits<double>::infinity();
  cluster.device.fp32_flops = -1;
  cluster.intra_node.bandwidth = 0;
  cluster.inter_node.latency_s = std::numeric_limits<double>::quiet_NaN();
  const std::string text = problems_of(cluster);
  for (const char* place : {"cluster.nodes: ",
                            "cluster.device.memory_bytes: ",
                            "cluster.device.memory_bandwidth: ",
                            "cluster.device.fp32_flops: ",
                            "cluster.intra_node.bandwidth: ",
                            "cluster.inter_node.latency_s: "}) {
    INFO(place);
    CHECK(text.find(place) != std::string::npos);
  }
}

TEST_CASE("Links inside a node and between nodes are of different kinds") {
  ClusterSpec cluster;
  cluster.intra_node.kind = LinkKind::kNetwork;
  cluster.inter_node.kind = LinkKind::kNvlink;
  CHECK(problems_of(cluster).find("cluster.intra_node.kind: ") == 0);
  CHECK(problems_of(cluster).find("cluster.inter_node.kind: must be network") != std::string::npos);
}

TEST_CASE("Device counts saturate and are limited") {
  ClusterSpec cluster;
  cluster.nodes = kMaxWorldSize;
  CHECK(problems_of(cluster).find("cluster.nodes: ") == 0);
  cluster.nodes = cluster.devices_per_node = kSaturated;
  CHECK(cluster.devices() == kSaturated);
}

TEST_CASE("A context larger than the memory is refused") {
  ClusterSpec cluster;
  cluster.device.context_bytes = cluster.device.memory_bytes;
  CHECK(problems_of(cluster).find("cluster.device.context_bytes: ") == 0);
}

TEST_CASE("Autocast computes at the bf16 rate") {
  DeviceSpec device;
  device.bf16_flops = 7;
  CHECK(peak_flops(device, Precision::kAutocast) == 7);
  CHECK(peak_flops(device, Precision::kFp64) == device.fp64_flops);
}
