// ClassEmitter: all sections of one class of ranks: init, the step in its variants, evaluate, save.
#pragma once

#include <memory>

#include "core/planner/planner.h"
#include "core/planner/stage_emitter.h"

namespace lockstep {

class ClassEmitter {
 public:
  ClassEmitter(PlanBuilder& tables,
               const PlannerContext& context,
               const StageLayout& stage,
               const Schedule& schedule,
               int data_coordinate,
               ProgramBuilder::Mode mode);

  /// Appends this class's program to every section of the plan (made by the first class).
  void emit(Plan& plan, const PlanOptions& options);
  std::vector<Buffer> take_buffers() { return b_.take_buffers(); }
  /// Counting: the pieces of the step go to `sink`.
  void record_to(FragmentSink* sink) { b_.record_to(sink); }
  /// Counting mode: the last step variant, with init behind it.
  ProgramSummary count_steady_step();
  /// The same without the end of the step, for the pieces of its passes.
  void count_passes();

 private:
  void run_init();
  void begin_steady_step();
  void run_step(int variant);
  void run_passes(int variant);
  void end_step(int variant);
  void run_evaluate();
  void run_save();
  void allocate_stage_buffers();
  void tie_initial_weights();
  void reduce_tied_gradient();
  void count_tokens();
  void save_statistics();
  void report_loss(Phase phase);
  int variants() const;

  const PlannerContext& context_;
  const StageLayout& stage_;
  const Schedule& schedule_;
  ProgramBuilder b_;
  StageBuffers buffers_;
  std::unique_ptr<DataParallelism> data_;
};

}  // namespace lockstep
