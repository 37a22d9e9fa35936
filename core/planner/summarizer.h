// Summarizer: plan summaries at the rate that a search needs.
//
//     Summarizer summarizer;  // one per thread: it keeps what scenarios have in common
//     for (const Scenario& scenario : candidates) {
//       const StepOutline& step = summarizer.outline(scenario);  // valid until the next call
//       for (const ClassOutline& each : step.classes) use(each.peak, step.parts_of(each));
//     }
//
// It holds no formula of a strategy. The planner runs in counting mode, once per kind of stage, and
// hands over the step in pieces (core/planner/segment_fragments.h); what a forward of a block
// amounts to depends neither on the number of layers, pipeline ranks and micro-batches nor on the
// data-parallel degree, what an optimizer step amounts to depends not on the batch. So the pieces
// of a few runs put together the steps of thousands of scenarios, exactly. Scenarios whose pieces
// are not alike (DataParallel and ZeroRedundancyOptimizer, where ranks own different parameters;
// MLPs; schedules from a file; unused parameters) are counted afresh each time.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/planner/planner.h"
#include "core/planner/segment_fragments.h"

namespace lockstep {

/// So often does a fragment take place in a step.
struct FragmentCount {
  const Fragment* fragment = nullptr;
  std::int64_t times = 0;
};

/// The steady step of one class of ranks.
struct ClassOutline {
  CategoryBytes at_start{};
  CategoryBytes at_end{};
  std::int64_t operations = 0;
  MemoryPeak peak;
  std::uint32_t first_part = 0;  ///< parts: use StepOutline::parts_of
  std::uint32_t parts = 0;
};

struct StepOutline {
  Mesh mesh;
  AxisMask class_axes = 0;      ///< as Plan::class_axes
  double pipeline_stretch = 1;  ///< as PlanSummary::pipeline_stretch
  std::vector<ClassOutline> classes;
  std::vector<FragmentCount> parts;  ///< classes that do the same share theirs

  std::span<const FragmentCount> parts_of(const ClassOutline& each) const {
    return std::span<const FragmentCount>(parts).subspan(each.first_part, each.parts);
  }
};

/// Not thread-safe.
class Summarizer {
 public:
  Summarizer();
  ~Summarizer();
  Summarizer(Summarizer&&) noexcept;
  Summarizer& operator=(Summarizer&&) noexcept;

  /// The steady step of a validated, resolved scenario. Valid until the next call.
  const StepOutline& outline(const Scenario& scenario);
  /// The same with operations that agree counted together, and tables of its own.
  PlanSummary summarize(const Scenario& scenario);

  /// What shapes and communicators of the fragments' counts index. Grow with every call.
  const std::vector<Shape>& shapes() const;
  const std::vector<Communicator>& communicators() const;

 private:
  class Workshop;
  std::unique_ptr<Workshop> workshop_;
};

}  // namespace lockstep
