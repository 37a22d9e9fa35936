// ValidateCollectives: predicted against measured times of collectives (nccl-tests and alike).
//
// Reads a table of measurements, finds the machine of each row by two tables of facts, and prices
// it by communication_cost.h. Rows are refused by rules that look at no source:
//
//   - the table of hardware names has no preset for it
//   - the site's network runs over TCP: NCCL's figures are of InfiniBand and RoCE
//   - no time and no bandwidth is printed
//   - slower by a half than a larger message of the same table: something disturbed it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/cluster.h"
#include "core/io/csv_reader.h"
#include "simulator/communication_cost.h"

namespace lockstep::sim {

/// By what the predicted time consists of: latency (the bytes take less than a fifth of it), knee,
/// bandwidth (more than four fifths).
enum class Regime : std::uint8_t { kLatency, kKnee, kBandwidth };
std::string_view name_of(Regime regime);

struct CollectiveRow {
  std::int32_t line = 0;
  std::string id;
  std::string source;
  std::string hardware;
  std::string collective;  ///< as nccl-tests spells it
  std::int64_t nodes = 0;  ///< hosts; of an NVLink domain several
  std::int64_t gpus = 0;
  double bytes = 0;
  double measured_s = 0;  ///< 0 when refused for want of a time
  std::string refused;    ///< why no use is made of it; empty = compared
  GroupPlacement placement;
  CommunicationCost cost;
  Regime regime = Regime::kLatency;

  /// Predicted over measured minus one.
  double error() const { return cost.seconds / measured_s - 1; }
};

/// The tables as they stand in data/validation/.
struct CollectiveTables {
  CsvTable collectives;
  CsvTable hardware;
  CsvTable sites;
};

/// All rows in file order, predicted where nothing speaks against it.
std::vector<CollectiveRow> validate_collectives(const CollectiveTables& tables,
                                                const Efficiency& efficiency = kEfficiency);

struct ErrorSummary {
  std::size_t rows = 0;
  double median = 0;  ///< of |error|
  double p90 = 0;
  double bias = 0;  ///< median of the error with its sign
};

/// Of the rows that were compared, of one collective and regime where given.
ErrorSummary summary_of(const std::vector<CollectiveRow>& rows,
                        std::string_view collective = "",
                        std::optional<Regime> regime = std::nullopt);

}  // namespace lockstep::sim
