#include "visualizer/models/shards_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "core/report_text.h"

namespace lockstep::view {
namespace {

constexpr int kLabel = 18;
constexpr std::size_t kNamed = 8;

std::string row_text(const std::vector<ShardInterval>& row, const TimeWindow& window, int columns) {
  std::string line(static_cast<std::size_t>(columns), letter_of(ShardStage::kSharded));
  for (const ShardInterval& it : row) {
    const int first = column_of(window, columns, it.begin);
    const int last = std::max(first, column_of(window, columns, it.end - 1));
    std::fill(line.begin() + first, line.begin() + last + 1, letter_of(it.stage));
  }
  return line;
}

std::string traffic_text(const char* verb, const ShardTraffic& it, bool utf8) {
  return fmt::format("{} {} in {} messages, {} sent by this rank, exposed {}, waiting {}\n",
                     bytes_text(it.tensor_bytes),
                     verb,
                     it.messages,
                     bytes_text(std::llround(it.sent_bytes)),
                     time_text(it.exposed, utf8),
                     time_text(it.waiting, utf8));
}

std::string picture(const Shards& shards, const MemoryStack& memory, const TextOptions& options) {
  const TimeWindow window = shards.whole();
  const int columns = std::max(options.width, kNarrowestText) - kLabel - 3;
  std::string text = std::string(kLabel + 3, ' ') + axis_text(window, columns, options.utf8) + "\n";
  for (const ShardUnit& unit : shards.units()) {
    text += fmt::format("{:<{}}p  {}\n",
                        cut_text(unit.name, kLabel - 1),
                        kLabel,
                        row_text(unit.parameters, window, columns));
    text += fmt::format("{:<{}}g  {}\n", "", kLabel, row_text(unit.gradients, window, columns));
  }
  std::vector<std::int64_t> held;
  for (const MemoryColumn& column : memory.columns(window, columns)) {
    held.push_back(total(column.bytes));
  }
  text += fmt::format("{:<{}}   {}\n", "memory", kLabel, curve_text(held, options.utf8));
  return text +
         "p parameters: . sharded  < being gathered  o whole  U used\n"
         "g gradients:  . none  # whole  > being reduced  * this rank's shard\n";
}

std::string peak_text(const Shards& shards, const MemoryStack& memory, bool utf8) {
  const Nanoseconds at = memory.samples()[memory.peak()].time - memory.whole().from;
  std::string text = fmt::format("peak {} at {}, at {}\n",
                                 bytes_text(memory.peak_bytes()),
                                 time_text(at, utf8),
                                 memory.peak_text());
  TextTable table({{"held there by"},
                   {"parameters", Align::kRight},
                   {"gradients", Align::kRight},
                   {"messages", Align::kRight}});
  const std::vector<PeakHolder>& holders = shards.peak_holders();
  for (std::size_t i = 0; i < std::min(holders.size(), kNamed); ++i) {
    table.add({shards.units()[static_cast<std::size_t>(holders[i].unit)].name,
               bytes_text(holders[i].parameter_bytes),
               bytes_text(holders[i].gradient_bytes),
               bytes_text(holders[i].communication_bytes)});
  }
  text += table.text("  ");
  return holders.size() > kNamed
             ? text + fmt::format("  and {} more units\n", holders.size() - kNamed)
             : text;
}

std::string state_text(const Shards& shards, Nanoseconds at, bool utf8) {
  TextTable table({{"unit"}, {"parameters"}, {"gradients"}});
  const std::vector<ShardState> states = shards.state(at);
  for (std::size_t i = 0; i < states.size(); ++i) {
    const bool none = states[i].gradient_interval == nullptr;
    table.add({shards.units()[i].name,
               std::string(name_of(states[i].parameters)),
               none ? "none" : std::string(name_of(states[i].gradients))});
  }
  return fmt::format("\nat {}:\n{}", time_text(at - shards.whole().from, utf8), table.text("  "));
}

}  // namespace

char letter_of(ShardStage stage) {
  static constexpr char kLetters[] = {'.', '<', 'o', 'U', '#', '>', '*'};
  return kLetters[static_cast<std::size_t>(stage)];
}

std::string shards_text(const Shards& shards,
                        const MemoryStack& memory,
                        std::optional<Nanoseconds> at,
                        const TextOptions& options) {
  if (!shards.why_empty().empty()) {
    return fmt::format("rank {}: no units: {}\n", shards.rank(), shards.why_empty());
  }
  if (shards.whole().length() <= 0) {
    return "nothing happened: the step is empty\n";
  }
  std::int64_t largest = 0;
  for (const ShardUnit& unit : shards.units()) {
    largest = std::max(largest, unit.gathered_bytes);
  }
  const ShardUnit& first = shards.units().front();
  std::string text = fmt::format("rank {}: {} units cut over {} ranks, the largest {} when whole\n",
                                 shards.rank(),
                                 shards.units().size(),
                                 first.shards,
                                 bytes_text(largest));
  text += traffic_text("gathered", shards.gathers(), options.utf8) +
          traffic_text("reduced", shards.reductions(), options.utf8) + "\n";
  text += picture(shards, memory, options) + "\n" + peak_text(shards, memory, options.utf8);
  return at ? text + state_text(shards, *at, options.utf8) : text;
}

}  // namespace lockstep::view
