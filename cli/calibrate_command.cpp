// lockstep calibrate: measures this machine and writes the cluster file that describes it.
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "core/io/cluster_io.h"
#include "core/io/files.h"
#include "core/io/json_writer.h"
#include "core/names.h"
#include "core/report_text.h"
#include "executor/calibrate.h"
#include "kernels/cpu/gemm.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "Measures this machine for ranks that are threads of one process, and writes a cluster "
    "file.\n\n"
    "  lockstep calibrate\n"
    "  lockstep calibrate --ranks 4 --out four.json\n"
    "  lockstep compare --run --cluster cluster.json\n";

/// As the system names it.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  constexpr std::string_view kKey = "model name";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.rfind(kKey, 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "processor unknown";
}

/// "2026-01-31, AMD EPYC, fp32 products by oneDNN 2.6.3".
std::string when_and_where() {
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return fmt::format("{:04}-{:02}-{:02}, {}, fp32 products by {}",
                     day.tm_year + 1900,
                     day.tm_mon + 1,
                     day.tm_mday,
                     processor_name(),
                     kernels::cpu::float_gemm_library());
}

struct CalibrateCommand {
  std::string out = "cluster.json";
  int ranks = 2;
  bool json = false;

  int run() const {
    const Interrupt interrupt;
    const bool bar = isatty(STDERR_FILENO) != 0;
    exec::CalibrateOptions options;
    options.ranks = ranks;
    options.stop = [&interrupt] { return interrupt.requested(); };
    options.begins = [bar](const std::string& what) {
      fmt::print(stderr, "{}{}{}", bar ? "\r\033[K" : "", what, bar ? "" : "\n");
      std::fflush(stderr);
    };
    const exec::Calibration measured = exec::calibrate(options);
    if (bar) {
      fmt::print(stderr, "\r\033[K");
    }
    const ClusterSpec cluster = exec::cluster_of(measured, when_and_where());
    write_whole(out, {cluster_text(cluster)}, "calibrate");
    print(json ? as_json(measured, cluster) : as_text(measured, cluster));
    return 0;
  }

 private:
  std::string as_text(const exec::Calibration& it, const ClusterSpec& cluster) const {
    TextTable products({{"product"}, {"dtype"}, {"GFLOP/s per core", Align::kRight}});
    for (const exec::ProductRate& product : it.products) {
      products.add({fmt::format("{} x {} x {}", product.m, product.n, product.k),
                    std::string(name_of(product.dtype)),
                    fmt::format("{:.1f}", product.flops * 1e-9)});
    }
    TextTable transfers(
        {{"transfer"}, {"ranks", Align::kRight}, {"bytes", Align::kRight}, {"us", Align::kRight}});
    for (const exec::TransferTime& transfer : it.transfers) {
      transfers.add({transfer.kind,
                     std::to_string(transfer.ranks),
                     bytes_text(transfer.bytes),
                     fmt::format("{:.1f}", transfer.seconds * 1e6)});
    }
    return fmt::format(
        "{} threads at once on {} cores, a core each:\n\n{}\n{}\n"
        "  attention (forward)  {:>8.1f} GFLOP/s\n"
        "  memory               {:>8.2f} GB/s\n"
        "  special functions    {:>8.2f} G/s\n"
        "  an operation (host)  {:>8.2f} us\n"
        "  a hop of a transfer  {:>8.2f} us\n"
        "  transfers            {:>8.2f} GB/s per rank\n"
        "  products beside      {:>8.2f} of their speed alone\n\n"
        "{}: for --cluster\n",
        it.ranks,
        it.cores,
        products.text("  "),
        transfers.text("  "),
        it.attention_flops * 1e-9,
        it.memory_bandwidth * 1e-9,
        it.special_rate * 1e-9,
        it.launch_overhead_s * 1e6,
        cluster.intra_node.latency_s * 1e6,
        cluster.intra_node.bandwidth * 1e-9,
        it.speed_beside,
        out);
  }

  std::string as_json(const exec::Calibration& it, const ClusterSpec& cluster) const {
    JsonWriter writer;
    writer.begin_object();
    writer.field("schema_version", 1);
    writer.field("file", out);
    writer.field("ranks", it.ranks);
    writer.field("cores", it.cores);
    writer.begin_array("products");
    for (const exec::ProductRate& product : it.products) {
      writer.begin_object();
      writer.field("dtype", name_of(product.dtype));
      writer.field("m", product.m);
      writer.field("n", product.n);
      writer.field("k", product.k);
      writer.field("flops", product.flops);
      writer.end_object();
    }
    writer.end_array();
    writer.begin_array("transfers");
    for (const exec::TransferTime& transfer : it.transfers) {
      writer.begin_object();
      writer.field("kind", transfer.kind);
      writer.field("ranks", transfer.ranks);
      writer.field("bytes", transfer.bytes);
      writer.field("seconds", transfer.seconds);
      writer.end_object();
    }
    writer.end_array();
    writer.field("attention_flops", it.attention_flops);
    writer.field("memory_bandwidth", it.memory_bandwidth);
    writer.field("special_rate", it.special_rate);
    writer.field("launch_overhead_s", it.launch_overhead_s);
    writer.field("latency_s", cluster.intra_node.latency_s);
    writer.field("bandwidth", cluster.intra_node.bandwidth);
    writer.field("speed_beside_communication", it.speed_beside);
    writer.end_object();
    return writer.text();
  }
};

}  // namespace

void add_calibrate_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<CalibrateCommand>();
  CLI::App* app = program.add_subcommand("calibrate");
  app->description(kDescription);
  app->add_option("--out", command->out, "cluster file to write (default cluster.json)");
  app->add_option("--ranks", command->ranks, "threads that are measured at once (default 2)")
      ->check(CLI::Range(2, 64));
  app->add_flag("--json", command->json, "what was measured as one JSON object");
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
