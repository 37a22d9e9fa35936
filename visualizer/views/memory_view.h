// MemoryView: the memory of one rank over one step, stacked by category, under the device's limit;
// below it the allocations that are alive at the cursor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "visualizer/models/memory_stack.h"
#include "visualizer/views/memory_plot.h"
#include "visualizer/views/rank_chooser.h"
#include "visualizer/views/view.h"

namespace lockstep::views {

class MemoryView : public View {
 public:
  const char* id() const override { return "memory"; }
  ui::S title() const override { return ui::S::kMemoryView; }
  ui::S about() const override { return ui::S::kMemoryAbout; }
  void draw(ViewContext& context, bool has_keys) override;
  std::string text(const ViewContext& context) override;
  bool json(JsonWriter& json, const ViewContext& context) override;
  void draw_details(ViewContext& context) override;
  std::vector<KeyHelp> keys() const override;

 private:
  void use(const app::DocumentPtr& document);
  void make_stack();
  Nanoseconds peak_time() const { return stack_->samples()[stack_->peak()].time; }
  void draw_peak_text() const;
  MemoryPlot plot() const { return {*stack_, outside_, document_->memory.device_bytes}; }
  void draw_rows() const;

  app::DocumentPtr document_;  ///< what the models below are of
  RankChooser chooser_;
  std::unique_ptr<TraceIndex> index_;
  std::unique_ptr<view::MemoryStack> stack_;
  std::int64_t outside_ = 0;  ///< bytes that the plan does not see: context, libraries
  std::size_t listed_at_ = 0;
  std::vector<view::MemoryItem> listed_;  ///< alive at that sample
};

}  // namespace lockstep::views
