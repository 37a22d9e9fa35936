// lockstep clusters: the named machines with the sources of their figures.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/io/cluster_io.h"
#include "core/io/json_writer.h"
#include "core/names.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Named machines; one machine with the source of every figure.\n\n"
    "  lockstep clusters\n"
    "  lockstep clusters dgx-h100\n"
    "  lockstep clusters dgx-h100 --json > my_cluster.json\n";

std::string link_text(const LinkSpec& link) {
  return fmt::format("{}B/s", si_text(link.bandwidth) + (link.bandwidth < 1000 ? " " : ""));
}

std::string flops_text(double rate) {
  return rate == 0 ? "-" : si_text(rate);
}

struct ClustersCommand {
  std::string name;
  bool json = false;

  int run() const {
    print(name.empty() ? all_clusters() : one_cluster());
    return 0;
  }

 private:
  std::string all_clusters() const {
    TextTable table({{"cluster"},
                     {"device"},
                     {"per node", Align::kRight},
                     {"memory", Align::kRight},
                     {"memory rate", Align::kRight},
                     {"bf16 FLOP/s", Align::kRight},
                     {"inside a node"},
                     {"between nodes"}});
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.begin_array("clusters");
    for (const ClusterPreset& preset : cluster_presets()) {
      const ClusterSpec& it = preset.cluster;
      table.add({it.name,
                 it.device.name,
                 std::to_string(it.devices_per_node),
                 bytes_text(it.device.memory_bytes),
                 si_text(it.device.memory_bandwidth) + "B/s",
                 flops_text(it.device.bf16_flops),
                 fmt::format("{} {}", name_of(it.intra_node.kind), link_text(it.intra_node)),
                 fmt::format("{} x {}", it.nics_per_node, link_text(it.inter_node))});
      writer.begin_object();
      writer.field("name", it.name);
      writer.field("device", it.device.name);
      writer.field("devices_per_node", it.devices_per_node);
      writer.field("memory_bytes", it.device.memory_bytes);
      writer.field("bf16_flops", it.device.bf16_flops);
      writer.field("aliases", preset.aliases);
      writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    return json ? writer.text() : table.text();
  }

  /// With --json, a file that --cluster reads.
  std::string one_cluster() const {
    const std::optional<ClusterSpec> found = find_cluster_preset(name);
    if (!found) {
      throw UsageError("clusters",
                       unknown_cluster_message(name) + "; `lockstep clusters` lists them");
    }
    return json ? cluster_text(*found) : cluster_words(*found);
  }

  static std::string cluster_words(const ClusterSpec& it) {
    const DeviceSpec& device = it.device;
    TextTable table(
        {{it.name}, {fmt::format("{} x {} per node", it.devices_per_node, device.name)}});
    table.add({"FLOP/s",
               fmt::format("fp64 {}, fp32 {}, tf32 {}, bf16 {}, fp16 {}, fp8 {}",
                           flops_text(device.fp64_flops),
                           flops_text(device.fp32_flops),
                           flops_text(device.tf32_flops),
                           flops_text(device.bf16_flops),
                           flops_text(device.fp16_flops),
                           flops_text(device.fp8_flops))});
    table.add({"memory",
               fmt::format("{} at {}B/s, {} of it for the driver context",
                           bytes_text(device.memory_bytes),
                           si_text(device.memory_bandwidth),
                           bytes_text(device.context_bytes))});
    table.add({"launch", fmt::format("{:.3g} us per operation", device.launch_overhead_s * 1e6)});
    table.add({"inside a node",
               fmt::format("{} {} per device and direction, {:.3g} us",
                           name_of(it.intra_node.kind),
                           link_text(it.intra_node),
                           it.intra_node.latency_s * 1e6)});
    table.add({"between nodes",
               fmt::format("{} x {} per direction, {:.3g} us",
                           it.nics_per_node,
                           link_text(it.inter_node),
                           it.inter_node.latency_s * 1e6)});
    std::string text = table.text() + "sources\n";
    for (const std::string& source : it.sources) {
      text += "  " + source + "\n";
    }
    return text;
  }
};

}  // namespace

void add_clusters_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<ClustersCommand>();
  CLI::App* app = program.add_subcommand("clusters");
  app->description(kDescription);
  app->add_option("name", command->name, "preset to show with its sources");
  app->add_flag("--json", command->json, "JSON; of one cluster: a file that --cluster reads");
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
