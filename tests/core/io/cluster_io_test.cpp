#include "core/io/cluster_io.h"

#include "core/cluster_presets.h"
#include "core/error.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::string error_of(std::string_view text) {
  try {
    parse_cluster(text, "c.json");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("Every cluster preset is written and read back to the byte") {
  for (const ClusterPreset& preset : cluster_presets()) {
    const std::string text = cluster_text(preset.cluster);
    CHECK(cluster_text(parse_cluster(text, "c.json")) == text);
  }
}

TEST_CASE("A cluster file may start from a preset") {
  const ClusterSpec cluster = parse_cluster(R"({"schema_version": 1, "preset": "a100", "nodes": 2,
                        "device": {"launch_overhead_s": 4e-6}})",
                                            "c.json");
  CHECK(cluster.nodes == 2);
  CHECK(cluster.device.launch_overhead_s == 4e-6);
  CHECK(cluster.device.bf16_flops == Approx(312e12));
}

TEST_CASE("A cluster file may not name another: there is no chain to follow") {
  CHECK(error_of(R"({"file": "c.json"})").find("not possible here") != std::string::npos);
}

TEST_CASE("Unknown keys, wrong kinds and newer versions are refused with their place") {
  CHECK(error_of("{\"device\": {\"memory\": 1}}")
            .find("c.json:1:13: device.memory: unknown key, "
                  "nearest is device.memory_bytes") != std::string::npos);
  CHECK(error_of(R"({"intra_node": {"kind": "nvlinks"}})").find("nearest is \"nvlink\"") !=
        std::string::npos);
  CHECK(error_of(R"({"schema_version": 7})").find("written by a newer") != std::string::npos);
  CHECK(error_of("3").find("must be an object") != std::string::npos);
}
