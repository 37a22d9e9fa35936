// Report: what a step took, where the time went, what was sent and held: one function of plan and
// trace, the same for simulated and measured traces.
//
//   const Report report = make_report(plan, trace, report_facts(scenario));
//
// Per-rank figures are kept per track (ranks with equal times); figures for the whole run are means
// over ranks unless they say otherwise. How an instant is given to a cause: core/time_split.h.
//
// Model FLOPs are those of the matrix products of forward and backward; hardware FLOPs add what is
// computed a second time: recomputation, and the scores that a flash attention kernel makes again
// in its backward (5 products instead of 4). Attention counts in full, not its causal half. MFU and
// HFU divide them by step time x peak x devices (PaLM, arXiv:2204.02311, appendix B).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/critical_path.h"
#include "core/memory_timeline.h"
#include "core/plan.h"
#include "core/scenario.h"
#include "core/time_split.h"
#include "core/trace.h"
#include "core/traffic.h"

namespace lockstep {

/// What plan and trace do not say.
struct ReportFacts {
  std::int64_t tokens_per_step = 0;  ///< over all ranks; samples for models without a sequence
  double peak_flops = 0;             ///< of one device for the run's matrix products; 0 = unknown
};
/// Of a resolved scenario.
ReportFacts report_facts(const Scenario& scenario);

/// A kind of group, by its text: communicators of equal text are one entry.
struct ReportGroup {
  std::string name;      ///< "dp", "pp+tp"; "copy" for copies that serve no group
  bool control = false;  ///< metrics, counts and flags
};

/// Nanoseconds of a rank's step; they add up to it.
struct TimeSplit {
  Nanoseconds compute = 0;
  Nanoseconds recompute = 0;
  Nanoseconds bubble = 0;
  Nanoseconds host = 0;
  Nanoseconds idle = 0;
  std::vector<Nanoseconds> exposed;  ///< by Report::groups
  std::vector<Nanoseconds> waiting;  ///< by Report::groups

  Nanoseconds exposed_total() const;
  Nanoseconds waiting_total() const;
  Nanoseconds total() const;
};

/// One track.
struct RankReport {
  std::int32_t track = 0;
  std::int32_t rank = 0;   ///< the first
  std::int32_t count = 1;  ///< ranks of the track
  std::int32_t class_index = 0;
  TimeSplit time;
  MemoryMoment peak;  ///< of the section that ran: buffers of the plan only
  Nanoseconds peak_time = 0;
};

/// Messages of one kind over one group, as means over all ranks of the plan.
struct ReportTraffic {
  std::string group;
  std::string kind;
  std::string dtype;
  bool control = false;
  double messages = 0;
  double tensor_bytes = 0;  ///< Traffic::bytes
  double sent_bytes = 0;    ///< Traffic::mean_sent
};

/// Compute time that `rank` lost because `for_rank` came to a collective or message last.
struct RankWait {
  std::int32_t rank = 0;      ///< first of its track
  std::int32_t for_rank = 0;  ///< first of its track
  std::int32_t group = 0;     ///< index into Report::groups
  Nanoseconds time = 0;
  std::int64_t times = 0;
};

struct Report {
  TraceSource source = TraceSource::kSimulated;
  std::int32_t section = 0;
  std::int32_t iteration = 0;
  std::int32_t devices = 1;
  Nanoseconds step_time = 0;
  std::int64_t operations = 0;  ///< of all tracks, each once, alloc and free included
  std::int64_t tokens = 0;
  double model_flops = 0;     ///< of all ranks
  double hardware_flops = 0;  ///< of all ranks
  double peak_flops = 0;      ///< of one device
  std::vector<ReportGroup> groups;
  std::vector<RankReport> ranks;       ///< by track
  std::vector<ReportTraffic> traffic;  ///< in order of first use
  std::vector<RankWait> waits;         ///< longest first
  std::vector<PathSegment> path;       ///< critical path
  std::vector<Stall> stalls;

  double step_time_s() const { return static_cast<double>(step_time) * 1e-9; }
  /// Rates are 0 of a step that never ended.
  double tokens_per_s() const;
  double tokens_per_s_per_device() const { return tokens_per_s() / devices; }
  double flops_per_device() const;  ///< model FLOP/s
  double mfu() const;               ///< 0 when the peak is not known
  double hfu() const;
  double bubble_fraction() const;                ///< of all ranks' time
  double mean_exposed_s(int group) const;        ///< over ranks
  double mean_waiting_s(int group) const;        ///< over ranks
  double exposed_fraction() const;               ///< transfer and waiting of all groups
  const RankReport& worst_memory() const;        ///< highest peak
  std::int64_t straggler_total(int rank) const;  ///< [ns] that others waited for `rank`
};

/// Report of `step` (index into Trace::steps), or of the last one. BadInputError when the trace
/// does not fit the plan.
Report make_report(const Plan& plan, const Trace& trace, const ReportFacts& facts, int step = -1);

}  // namespace lockstep
