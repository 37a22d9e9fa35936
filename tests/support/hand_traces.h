// Traces that no engine made: small ones written down by hand, and random ones played over any plan
// by an interpreter of its own (rule R2 of core/plan.h, nothing else), so that reports, exports and
// pictures are tested without the simulator.
//
//     HandStep step(mesh_of(1, 2));
//     step.rank([&](ProgramBuilder& b) { ... });   // one program per rank
//     step.rank(...);
//     step.spans(0, {{0, 0, 0, 2}, {1, 2, 5, 8}}); // issued, arrived, started, ended
//     const TraceIndex index(step.plan(), step.step());
#pragma once

#include <array>
#include <random>
#include <vector>

#include "core/planner/program_builder.h"
#include "core/trace.h"

namespace lockstep::test {

/// One step in which every rank has a program of its own.
class HandStep {
 public:
  explicit HandStep(const Mesh& mesh);

  std::uint8_t group(AxisMask axes, bool control = false) {
    return tables_.communicator(axes, 0, control);
  }

  /// Writes the program of the next rank.
  template <typename Body>
  void rank(Body&& body) {
    ProgramBuilder b(tables_, ProgramBuilder::Mode::kEmit);
    b.begin_section();
    b.at(Phase::kForward, 0, 0);
    body(b);
    add_program(b.end_section(), b.take_buffers());
  }

  /// Times of a rank's spans in order: issued, arrived, started, ended.
  void spans(int rank, const std::vector<std::array<Nanoseconds, 4>>& times);
  Span& span(int rank, std::size_t number) {
    return trace_.steps[0].tracks[static_cast<std::size_t>(rank)].spans[number];
  }
  void end(Nanoseconds end) { trace_.steps[0].end = end; }

  const Plan& plan() { return tables_.plan(); }
  Trace& trace() { return trace_; }
  const TraceStep& step() const { return trace_.steps[0]; }

 private:
  void add_program(Program program, std::vector<Buffer> buffers);

  PlanBuilder tables_;
  Trace trace_;
};

BufferId hand_buffer(ProgramBuilder& b);
/// Reads and writes on the compute stream.
void hand_compute(ProgramBuilder& b, BufferId reads, BufferId writes);
void hand_all_reduce(ProgramBuilder& b, std::uint8_t group, BufferId of, std::uint16_t flags = 0);

/// Plays a section with random durations and host times; one track per rank.
Trace random_trace(const Plan& plan, int section, std::mt19937_64& random);

/// The section of the step that repeats.
int steady_section(const Plan& plan);

}  // namespace lockstep::test
