#include "simulator/validate_collectives.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "core/cluster_presets.h"

namespace lockstep::sim {
namespace {

constexpr double kGiga = 1e9;
constexpr double kGigabit = 1e9 / 8;
constexpr double kMicro = 1e-6;
constexpr double kDisturbed = 1.5;

/// What one row of the table says, and the machine.
struct Reader {
  const CollectiveTables& tables;
  const Efficiency& efficiency;

  CollectiveRow row(const CsvRow& record) const;
  void set_measured(const CsvRow& record, CollectiveRow& row) const;
  void predict(const CsvRow& record, CollectiveRow& row) const;
  const CsvRow* site_of(const CollectiveRow& row) const;
  std::optional<ClusterSpec> cluster_of(CollectiveRow& row) const;
};

std::optional<Collective> collective_named(std::string_view name) {
  if (name == "all_reduce") {
    return Collective::kAllReduce;
  }
  if (name == "all_gather") {
    return Collective::kAllGather;
  }
  if (name == "reduce_scatter") {
    return Collective::kReduceScatter;
  }
  if (name == "alltoall") {
    return Collective::kAllToAll;
  }
  return std::nullopt;
}

/// nccl-tests' factor from algbw to busbw.
double bus_factor(const CollectiveRow& row) {
  const auto ranks = static_cast<double>(row.gpus);
  if (row.collective == "sendrecv") {
    return 1;
  }
  return (ranks - 1) / ranks * (row.collective == "all_reduce" ? 2 : 1);
}

double required(const CsvTable& table, const CsvRow& record, std::string_view column) {
  const std::optional<double> value = table.number(record, table.column(column));
  if (!value || *value <= 0) {
    table.refuse(record, fmt::format("{} must be a positive number", column));
  }
  return *value;
}

void Reader::set_measured(const CsvRow& record, CollectiveRow& row) const {
  const CsvTable& table = tables.collectives;
  if (const auto time = table.number(record, table.column("time_us"))) {
    row.measured_s = *time * kMicro;
  } else if (const auto bus = table.number(record, table.column("busbw_gbps"))) {
    row.measured_s = row.bytes * bus_factor(row) / (*bus * kGiga);
  }
  if (row.measured_s <= 0) {
    row.measured_s = 0;
    row.refused = "no time and no bandwidth is printed";
  }
}

const CsvRow* Reader::site_of(const CollectiveRow& row) const {
  const CsvTable& table = tables.sites;
  const std::size_t source = table.column("source");
  const std::size_t hardware = table.column("hardware");
  for (const CsvRow& site : table.rows) {
    if (row.source.starts_with(table.text(site, source)) &&
        row.hardware.starts_with(table.text(site, hardware))) {
      return &site;
    }
  }
  return nullptr;
}

/// The preset of the hardware, with the site's network; none, with the reason, if it has none.
std::optional<ClusterSpec> Reader::cluster_of(CollectiveRow& row) const {
  const CsvTable& names = tables.hardware;
  const std::size_t name = names.column("hardware");
  const auto known = std::find_if(names.rows.begin(), names.rows.end(), [&](const CsvRow& record) {
    return names.text(record, name) == row.hardware;
  });
  if (known == names.rows.end()) {
    row.refused = fmt::format("no preset for hardware \"{}\"", row.hardware);
    return std::nullopt;
  }
  const std::string& preset = names.text(*known, names.column("preset"));
  std::optional<ClusterSpec> cluster = find_cluster_preset(preset);
  if (!cluster) {
    names.refuse(*known, unknown_cluster_message(preset));
  }
  if (const CsvRow* site = site_of(row)) {
    const CsvTable& table = tables.sites;
    if (table.text(*site, table.column("transport")) == "tcp" && row.nodes > 1) {
      row.refused = "the network runs over TCP";
      return std::nullopt;
    }
    cluster->devices_per_node =
        table.integer(*site, table.column("devices_per_node")).value_or(cluster->devices_per_node);
    cluster->nics_per_node =
        table.integer(*site, table.column("nics_per_node")).value_or(cluster->nics_per_node);
    if (const auto gigabits = table.number(*site, table.column("nic_gigabits"))) {
      cluster->inter_node.bandwidth = *gigabits * kGigabit;
    }
    if (const auto latency = table.number(*site, table.column("nic_latency_us"))) {
      cluster->inter_node.latency_s = *latency * kMicro;
    }
  }
  return cluster;
}

/// The same number of ranks on each host, or all of each NVLink domain.
GroupPlacement placed(const ClusterSpec& cluster, const CollectiveRow& row) {
  const std::int64_t per_host = (row.gpus + row.nodes - 1) / row.nodes;
  const std::int64_t per_node = cluster.devices_per_node > nccl::kLargestHost
                                    ? std::min(row.gpus, cluster.devices_per_node)
                                    : per_host;
  GroupPlacement placement;
  placement.members = static_cast<std::int32_t>(row.gpus);
  placement.nodes = static_cast<std::int32_t>((row.gpus + per_node - 1) / per_node);
  placement.most_per_node = static_cast<std::int32_t>(per_node);
  placement.least_per_node = placement.most_per_node;
  return placement;
}

Regime regime_of(const CommunicationCost& cost) {
  constexpr double kFifth = 0.2;
  const double of_bytes = cost.bandwidth > 0 ? cost.bytes / cost.bandwidth / cost.seconds : 0;
  return of_bytes < kFifth       ? Regime::kLatency
         : of_bytes > 1 - kFifth ? Regime::kBandwidth
                                 : Regime::kKnee;
}

void Reader::predict(const CsvRow& record, CollectiveRow& row) const {
  const std::optional<ClusterSpec> cluster = cluster_of(row);
  if (!cluster) {
    return;
  }
  row.placement = placed(*cluster, row);
  const LinkCosts costs(*cluster, efficiency);
  const CsvTable& table = tables.collectives;
  const std::string& forced = table.text(record, table.column("algorithm"));
  const std::optional<Collective> collective = collective_named(row.collective);
  if (row.collective == "sendrecv") {
    // Every rank sends to the next: one member per message, all at once.
    GroupPlacement pair = row.placement;
    pair.members = 2;
    row.cost = message_cost(costs, pair, static_cast<std::int64_t>(row.bytes));
  } else if (!collective) {
    table.refuse(record, fmt::format("collective \"{}\" is not known", row.collective));
  } else if (forced == "ring") {
    row.cost = collective_cost_by(
        costs, row.placement, *collective, row.bytes, Algorithm::kRing, Protocol::kSimple);
  } else {
    const bool sharded =
        collective == Collective::kAllGather || collective == Collective::kReduceScatter;
    const double elements = row.bytes / (sharded ? static_cast<double>(row.gpus) : 1);
    row.cost = collective_cost(costs,
                               row.placement,
                               *collective,
                               static_cast<std::int64_t>(std::llround(elements)),
                               DType::kUint8);
  }
  row.regime = regime_of(row.cost);
}

CollectiveRow Reader::row(const CsvRow& record) const {
  const CsvTable& table = tables.collectives;
  CollectiveRow row;
  row.line = record.line;
  row.id = table.text(record, table.column("id"));
  row.source = table.text(record, table.column("source"));
  row.hardware = table.text(record, table.column("hardware"));
  row.collective = table.text(record, table.column("collective"));
  row.nodes = static_cast<std::int64_t>(required(table, record, "nodes"));
  row.gpus = static_cast<std::int64_t>(required(table, record, "gpus"));
  row.bytes = required(table, record, "size_bytes");
  set_measured(record, row);
  if (row.refused.empty()) {
    predict(record, row);
  }
  return row;
}

/// A table is what one run printed: same source, hardware, ranks and collective.
void refuse_disturbed(std::vector<CollectiveRow>& rows) {
  using Key = std::tuple<std::string, std::string, std::int64_t, std::int64_t, std::string>;
  std::map<Key, std::vector<CollectiveRow*>> runs;
  for (CollectiveRow& row : rows) {
    if (row.refused.empty()) {
      runs[{row.source, row.hardware, row.nodes, row.gpus, row.collective}].push_back(&row);
    }
  }
  for (const auto& [key, run] : runs) {
    for (CollectiveRow* row : run) {
      for (const CollectiveRow* other : run) {
        if (other->bytes > row->bytes && other->measured_s * kDisturbed < row->measured_s) {
          row->refused = "slower by a half than a larger message of the same table";
        }
      }
    }
  }
}

double quantile(const std::vector<double>& sorted, double q) {
  const double at = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = at - static_cast<double>(below);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

}  // namespace

std::string_view name_of(Regime regime) {
  switch (regime) {
    case Regime::kLatency:
      return "latency";
    case Regime::kKnee:
      return "knee";
    case Regime::kBandwidth:
      return "bandwidth";
  }
  return "?";
}

std::vector<CollectiveRow> validate_collectives(const CollectiveTables& tables,
                                                const Efficiency& efficiency) {
  const Reader reader{tables, efficiency};
  std::vector<CollectiveRow> rows;
  for (const CsvRow& record : tables.collectives.rows) {
    rows.push_back(reader.row(record));
  }
  refuse_disturbed(rows);
  return rows;
}

ErrorSummary summary_of(const std::vector<CollectiveRow>& rows,
                        std::string_view collective,
                        std::optional<Regime> regime) {
  std::vector<double> errors;
  std::vector<double> sizes;
  for (const CollectiveRow& row : rows) {
    if (row.refused.empty() && (collective.empty() || row.collective == collective) &&
        (!regime || row.regime == *regime)) {
      errors.push_back(row.error());
      sizes.push_back(std::abs(row.error()));
    }
  }
  if (errors.empty()) {
    return {};
  }
  std::sort(errors.begin(), errors.end());
  std::sort(sizes.begin(), sizes.end());
  constexpr double kMedian = 0.5;
  constexpr double kMost = 0.9;
  return {
      errors.size(), quantile(sizes, kMedian), quantile(sizes, kMost), quantile(errors, kMedian)};
}

}  // namespace lockstep::sim
