// MemoryPlot: the stacked memory of one rank with the device's limit, the peak and the time that is
// pointed at. The memory view is made of it, and what shows memory below something else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/memory_report.h"
#include "visualizer/app/session.h"
#include "visualizer/models/memory_stack.h"
#include "visualizer/ui/plot.h"

namespace lockstep::views {

/// A category in the window's language.
const char* category_text(Category category);

struct MemoryPlot {
  const view::MemoryStack& stack;
  std::int64_t outside = 0;  ///< bytes that the plan does not see: context, libraries
  std::int64_t limit = 0;    ///< of the device
  int near = 4;              ///< times the peak: a higher limit is told, not drawn

  std::int64_t peak_bytes() const { return stack.peak_bytes() + outside; }
  Nanoseconds peak_time() const { return stack.samples()[stack.peak()].time; }

  /// What is held at a sample, by category.
  void draw_legend(std::size_t sample) const;
  /// A press or drag moves the session's time. The place is tagged; nothing where it is too small.
  void draw(app::Session& session,
            const ImVec2& size,
            Nanoseconds now,
            const std::string& peak_text) const;

 private:
  std::vector<ui::Band> bands(const ui::Plot& plot) const;
  void draw_limit(const ui::Plot& plot) const;
};

/// What the plan does not count on the ranks of a class.
std::int64_t outside_bytes(const MemoryReport& report, int class_index);

}  // namespace lockstep::views
