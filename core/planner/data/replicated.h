// ReplicatedParameters: every data-parallel rank holds all parameters, gradients and optimizer
// states. By itself (one rank) it communicates nothing; DDP, DataParallel and
// ZeroRedundancyOptimizer build on it.
#pragma once

#include <vector>

#include "core/planner/data_parallel.h"
#include "core/planner/optimizer_states.h"

namespace lockstep {

class ReplicatedParameters : public DataParallelism {
 public:
  explicit ReplicatedParameters(const DataParallelInputs& inputs);

  void initialize(ProgramBuilder& b) override;
  void create_masters(ProgramBuilder& b) override;
  void allocate_states(ProgramBuilder& b) override;
  void begin_step(ProgramBuilder& b, int variant) override;
  View weight(ProgramBuilder& b, std::int32_t parameter) override;
  GradientTarget gradient(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void gradient_ready(ProgramBuilder& b, std::int32_t parameter, const Pass& pass) override;
  void finish_gradients(ProgramBuilder& b) override;
  void for_each_owned(ProgramBuilder& b, const PieceVisitor& visit) override;
  void finish_step(ProgramBuilder& b) override;
  View reduced_gradient(ProgramBuilder& b, std::int32_t parameter) override;
  View stored_parameter(ProgramBuilder& b, std::int32_t parameter) override;
  bool uniform_blocks() const override { return context_.uniform_blocks(); }
  void save(ProgramBuilder& b) override;
  void report_loss(ProgramBuilder& b, const View& loss) override { reduce_loss(b, context_, loss); }

 protected:
  /// body(parameter) for the parameters that this stage stores, in model order.
  template <typename Body>
  void for_each_parameter(ProgramBuilder& b, Body&& body) {
    for (int chunk = 0; chunk < stage_.chunks(); ++chunk) {
      for_each_position(b, stage_, chunk, false, uniform_blocks(), [&](int position) {
        for_each_parameter_of(position, body);
      });
    }
  }
  template <typename Body>
  void for_each_parameter_of(int position, Body&& body) {
    const Segment& segment =
        context_.graph->segments[static_cast<std::size_t>(stage_.segment(position))];
    const auto count = static_cast<std::int32_t>(context_.graph->form(segment).parameters.size());
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t parameter = segment.first_parameter + i;
      if (stored(parameter) == parameter) {
        body(parameter);
      }
    }
  }
  /// The parameter whose storage `parameter` uses: itself, or the embedding when tied to it here.
  std::int32_t stored(std::int32_t parameter) const {
    return stage_.has_embedding && context_.graph->parameter(parameter).tied ? 0 : parameter;
  }
  std::int64_t elements(std::int32_t parameter) const {
    return context_.local_elements(context_.graph->parameter(parameter));
  }
  std::size_t index(std::int32_t parameter) const { return static_cast<std::size_t>(parameter); }
  /// Whether the optimizer on this rank updates the parameter.
  virtual bool owns(std::int32_t /*parameter*/) const { return true; }
  /// Autocast: the 16-bit copies are made anew.
  void free_casts(ProgramBuilder& b);
  /// Where the final gradient lies.
  virtual View final_gradient(ProgramBuilder& b, std::int32_t parameter);

  const PlannerContext& context_;
  const StageLayout& stage_;
  const StageBuffers& buffers_;
  std::vector<BufferId> weight_;    ///< by parameter
  std::vector<BufferId> gradient_;  ///< by parameter; kNoBuffer until written in this step
  std::vector<OptimizerStates> states_;

 private:
  /// Of the whole parameter, the same wherever it is named; none when counting.
  std::uint16_t layout_of(ProgramBuilder& b, std::int32_t parameter);

  std::vector<std::uint16_t> layout_;  ///< by parameter; kNoLayout until asked for
  std::vector<BufferId> cast_;         ///< autocast: 16-bit copies of matrices, for one step
  std::vector<OwnedPiece> pieces_;
};

}  // namespace lockstep
