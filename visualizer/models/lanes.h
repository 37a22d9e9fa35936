// Lanes: rows of boxes over time, whatever they come from: a plan and its trace, or a foreign
// profiler's file. What a timeline is painted from.
//
//     for (std::size_t row = 0; row < lanes.rows().size(); ++row)
//       for (const LaneBox& box : lanes.boxes(row, {from, to}, narrowest))
//         draw(box, lanes.label(row, box));
//
// What it is not: pixels, colours or fonts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/trace.h"

namespace lockstep::view {

/// What a piece of a lane is, told apart by letter, hatch and colour.
enum class Paint : std::uint8_t {
  kForward,
  kBackward,  ///< whole, or the gradient of the inputs alone
  kBackwardWeight,
  kRecompute,
  kOptimizer,
  kOther,  ///< initialisation, copies in and out of messages, clipping
  kTransfer,
  kWaiting,  ///< arrived at a message, others have not
  kHost,
  kKernel,  ///< of a foreign trace, which does not say what for
};
inline constexpr int kPaintCount = 10;
std::string_view name_of(Paint paint);
/// The letter that stands for it in terminals and legends.
char letter_of(Paint paint);

struct TimeWindow {
  Nanoseconds from = 0;
  Nanoseconds to = 0;
  Nanoseconds length() const { return to - from; }
};

inline constexpr std::uint32_t kNoItem = std::numeric_limits<std::uint32_t>::max();

struct LaneRow {
  std::string group;      ///< "rank 0"; rows of a group follow one another
  std::string name;       ///< "compute"
  std::int32_t rank = 0;  ///< -1 where rows have none
};

struct LaneBox {
  Nanoseconds begin = 0;
  Nanoseconds end = 0;
  Nanoseconds busy = 0;  ///< covered; less than the width where several are folded into one
  Paint paint = Paint::kForward;
  std::uint32_t item = kNoItem;  ///< which one of its row's source; kNoItem where folded
  std::uint32_t count = 1;       ///< how many are folded
};

/// A name and a value; what a details panel lists.
using DetailLines = std::vector<std::pair<std::string, std::string>>;

class Lanes {
 public:
  virtual ~Lanes() = default;

  virtual const std::vector<LaneRow>& rows() const = 0;
  virtual TimeWindow whole() const = 0;
  /// In order, without overlap; what is narrower than `narrowest` is folded with its neighbours.
  virtual std::vector<LaneBox> boxes(std::size_t row,
                                     const TimeWindow& window,
                                     Nanoseconds narrowest) const = 0;
  /// Few words, the most telling first; for a folded box how many there are.
  virtual std::string label(std::size_t row, const LaneBox& box) const = 0;
  virtual DetailLines details(std::size_t row, const LaneBox& box) const = 0;
  /// Items with equal keys have equal labels, so that names need not be compared one by one.
  virtual std::uint64_t name_key(std::size_t row, std::uint32_t item) const = 0;
  /// The item's box in the row, `count` 0 when there is none: what a selection refers to.
  virtual LaneBox find(std::size_t row, std::uint32_t item) const = 0;
};

/// How much of `window` each paint covers in the row, folded boxes counted by their own time.
std::vector<Nanoseconds> paint_times(const Lanes& lanes, std::size_t row, const TimeWindow& window);

}  // namespace lockstep::view
