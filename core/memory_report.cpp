#include "core/memory_report.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "core/layout.h"
#include "core/plan_text.h"
#include "core/planner/planner.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMebibyte = std::int64_t{1} << 20;
constexpr std::int64_t kGibibyte = std::int64_t{1} << 30;

// Device memory of NCCL, outside the caching allocator. Measured on 32 H100 (pith-train): 0.39 GiB
// for the world group, about 0.4 GiB for each further group with collectives, 0.2 GiB for a group
// of sends and receives. The bound is okoge's rule of 0.5 GB for any communicator.
constexpr std::int64_t kWorldGroupBytes = 39 * kGibibyte / 100;
constexpr std::int64_t kCollectiveGroupBytes = 4 * kGibibyte / 10;
constexpr std::int64_t kPipelineGroupBytes = 2 * kGibibyte / 10;
constexpr std::int64_t kGroupBoundBytes = 500'000'000;

// cuBLAS workspace that PyTorch allocates by default on Hopper and later
// (aten/src/ATen/cuda/CublasHandlePool.cpp); 8 MiB on earlier devices.
constexpr std::int64_t kWorkspaceBytes = 32 * kMebibyte;
// Everything that a first forward adds on H100 with compiled kernels: cuBLAS, flash attention,
// all-to-all, compiler (pith-train).
constexpr std::int64_t kWorkspaceBoundBytes = 297 * kGibibyte / 100;

// Caching allocator of PyTorch (c10/cuda/CUDACachingAllocator.cpp).
constexpr std::int64_t kMinBlock = 512;
constexpr std::int64_t kSmallSize = kMebibyte;
constexpr std::int64_t kSegment = 2 * kMebibyte;
constexpr std::int64_t kPage = 4096;

/// Groups that a class of ranks belongs to, without those for metrics: these are small and travel
/// over the world group.
struct Groups {
  int collective = 0;
  int pipeline = 0;  ///< only sends and receives
  bool world = false;
  std::string names;
};

class GroupCounter {
 public:
  GroupCounter(const Mesh& mesh, const std::vector<Communicator>& communicators)
      : mesh_(mesh), communicators_(communicators), used_(communicators.size(), Use::kNot) {}

  void note(std::uint8_t communicator, bool collective) {
    if (communicator == kNoCommunicator) {
      return;
    }
    Use& use = used_[communicator];
    use = collective || use == Use::kCollective ? Use::kCollective : Use::kMessages;
  }

  Groups groups() const {
    Groups groups;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const Communicator& it = communicators_[i];
      const bool alone = mesh_.count(it.axes) == 1;
      if (used_[i] == Use::kNot || it.control || alone) {
        continue;
      }
      ++(used_[i] == Use::kCollective ? groups.collective : groups.pipeline);
      groups.world = groups.world ||
                     (mesh_.count(it.axes) == mesh_.world_size() && it.pipeline_coordinates == 0);
      groups.names += (groups.names.empty() ? "" : ", ") + group_text(mesh_, it);
    }
    return groups;
  }

 private:
  enum class Use : std::uint8_t { kNot, kMessages, kCollective };
  const Mesh& mesh_;
  const std::vector<Communicator>& communicators_;
  std::vector<Use> used_;
};

Groups groups_of(const Plan& plan, int class_index) {
  GroupCounter counter(plan.mesh, plan.communicators);
  for (const Section& section : plan.sections) {
    for (const Operation& op : section.programs[static_cast<std::size_t>(class_index)].operations) {
      counter.note(op.communicator, op.kind == OperationKind::kCollective);
    }
  }
  return counter.groups();
}

Groups groups_of(const PlanSummary& summary, const ProgramSummary& program) {
  GroupCounter counter(summary.mesh, summary.communicators);
  for (const OperationCount& entry : program.counts) {
    counter.note(entry.communicator, entry.kind == OperationKind::kCollective);
  }
  return counter.groups();
}

/// A device without a driver context (a CPU) has no NCCL, no cuBLAS and no caching allocator.
bool has_driver(const Scenario& scenario) {
  return scenario.cluster.device.context_bytes > 0;
}

std::vector<MemoryTerm> non_tensor_terms(const Scenario& scenario, const Groups& groups) {
  std::vector<MemoryTerm> terms;
  if (!has_driver(scenario)) {
    return terms;
  }
  const std::int64_t context = scenario.cluster.device.context_bytes;
  terms.push_back({"driver context and kernels",
                   fmt::format("{}", context),
                   context,
                   "cluster.device.context_bytes; 0.52 GiB on H100 (pith-train)",
                   Basis::kMeasured});
  if (groups.collective + groups.pipeline > 0) {
    terms.push_back(
        {fmt::format("communicators ({})", groups.names),
         fmt::format("{} with collectives x {} + {} with messages only x {}",
                     groups.collective,
                     kCollectiveGroupBytes,
                     groups.pipeline,
                     kPipelineGroupBytes),
         groups.collective * kCollectiveGroupBytes + groups.pipeline * kPipelineGroupBytes,
         "0.4 and 0.2 GiB per group on 32 H100 (pith-train)",
         Basis::kMeasured});
  }
  terms.push_back({"library workspace",
                   fmt::format("{}", kWorkspaceBytes),
                   kWorkspaceBytes,
                   "cuBLAS workspace of PyTorch on Hopper (CublasHandlePool.cpp)",
                   Basis::kAssumed});
  return terms;
}

/// What rounding adds to the live buffers. Without their sizes: Megatron-LM's 5 %.
MemoryTerm rounding_term(const Scenario& scenario,
                         const std::vector<std::int64_t>& buffers,
                         std::int64_t tensor_bytes) {
  if (buffers.empty()) {
    return {"allocator rounding",
            fmt::format("ceil({} x 5 / 100)", tensor_bytes),
            ceil_divide(tensor_bytes * 5, 100),
            "plan too large to list its buffers: 5 % (Megatron-LM memory estimate)",
            Basis::kAssumed};
  }
  std::int64_t rounded = 0;
  if (!has_driver(scenario)) {
    for (const std::int64_t bytes : buffers) {
      rounded += round_up(bytes, kPage);
    }
    return {fmt::format("page rounding ({} buffers to 4 KiB each)", buffers.size()),
            fmt::format("{}", rounded - tensor_bytes),
            rounded - tensor_bytes,
            "one allocation per buffer",
            Basis::kAssumed};
  }
  std::int64_t small = 0;
  std::int64_t small_count = 0;
  for (const std::int64_t bytes : buffers) {
    if (bytes <= kSmallSize) {
      small += round_up(bytes, kMinBlock);
      ++small_count;
    } else {
      rounded += round_up(bytes, kSegment);
    }
  }
  rounded += round_up(small, kSegment);
  const auto large_count = static_cast<std::int64_t>(buffers.size()) - small_count;
  return {fmt::format("allocator rounding ({} buffers up to 1 MiB to 512 B and together to 2 MiB, "
                      "{} larger ones each to 2 MiB)",
                      small_count,
                      large_count),
          fmt::format("{}", rounded - tensor_bytes),
          rounded - tensor_bytes,
          "block and segment sizes of PyTorch's CUDACachingAllocator.cpp",
          Basis::kComputed};
}

std::vector<MemoryTerm> margin_terms(const Scenario& scenario,
                                     const Groups& groups,
                                     const MemoryTerm& rounding,
                                     std::int64_t tensor_bytes) {
  std::vector<MemoryTerm> terms{rounding};
  if (!has_driver(scenario)) {
    return terms;
  }
  const std::int64_t rounded = tensor_bytes + rounding.bytes;
  terms.push_back({"fragmentation",
                   fmt::format("ceil({} x 6 / 94)", rounded),
                   ceil_divide(rounded * 6, 94),
                   "reserved = allocated / 0.94 (SimuMax)",
                   Basis::kMeasured});
  if (groups.collective + groups.pipeline > 0) {
    const std::int64_t more = groups.collective * (kGroupBoundBytes - kCollectiveGroupBytes) +
                              groups.pipeline * (kGroupBoundBytes - kPipelineGroupBytes);
    terms.push_back({"communicators beyond the estimate",
                     fmt::format("{} x {} + {} x {}",
                                 groups.collective,
                                 kGroupBoundBytes - kCollectiveGroupBytes,
                                 groups.pipeline,
                                 kGroupBoundBytes - kPipelineGroupBytes),
                     more,
                     "0.5 GB per communicator (okoge)",
                     Basis::kMeasured});
    if (!groups.world) {
      terms.push_back({"default process group of all ranks",
                       fmt::format("{}", kWorldGroupBytes),
                       kWorldGroupBytes,
                       "0.39 GiB on 32 H100 (pith-train)",
                       Basis::kMeasured});
    }
  }
  terms.push_back({"library workspaces beyond the estimate",
                   fmt::format("{}", kWorkspaceBoundBytes - kWorkspaceBytes),
                   kWorkspaceBoundBytes - kWorkspaceBytes,
                   "2.97 GiB after the first forward on H100: cuBLAS, flash attention, compiled "
                   "kernels (pith-train)",
                   Basis::kMeasured});
  return terms;
}

std::int64_t sum(const std::vector<MemoryTerm>& terms) {
  return std::accumulate(
      terms.begin(), terms.end(), std::int64_t{0}, [](std::int64_t bytes, const MemoryTerm& term) {
        return bytes + term.bytes;
      });
}

/// "backward: matmul_grad_weight of layers.31.mlp.down, micro-batch 0".
std::string peak_text(const MemoryPeak& peak, const ModelGraph& graph, std::string_view action) {
  std::string text = fmt::format("{}: {}", name_of(peak.phase), action);
  if (peak.module != kNoModule) {
    text += " of " + graph.module_name(peak.module);
  }
  return peak.microbatch >= 0 ? text + fmt::format(", micro-batch {}", peak.microbatch) : text;
}

void count_ranks(MemoryReport& report) {
  std::vector<int> first(report.ranks.size(), -1);
  std::vector<int> count(report.ranks.size(), 0);
  for (int rank = 0; rank < report.mesh.world_size(); ++rank) {
    const auto index = static_cast<std::size_t>(report.mesh.index(report.class_axes, rank));
    first[index] = first[index] < 0 ? rank : first[index];
    ++count[index];
  }
  for (RankMemory& it : report.ranks) {
    it.rank = first[static_cast<std::size_t>(it.class_index)];
    it.count = count[static_cast<std::size_t>(it.class_index)];
  }
}

void finish(MemoryReport& report) {
  count_ranks(report);
  std::stable_sort(
      report.ranks.begin(), report.ranks.end(), [](const RankMemory& a, const RankMemory& b) {
        return a.peak_bytes() != b.peak_bytes() ? a.peak_bytes() > b.peak_bytes() : a.rank < b.rank;
      });
}

void add_counted(MemoryReport& report,
                 const Scenario& scenario,
                 const ModelGraph& graph,
                 const PlanSummary& summary) {
  report.counted = true;
  for (std::size_t i = 0; i < summary.classes.size(); ++i) {
    RankMemory& it = report.ranks.emplace_back();
    it.class_index = static_cast<int>(i);
    it.peak = summary.classes[i].peak;
    it.bytes = it.peak.bytes;
    const bool works = it.peak.work != Work::kNone;
    it.peak_text = peak_text(it.peak, graph, works ? name_of(it.peak.work) : "communication");
    it.peak_section = "step";
    const Groups groups = groups_of(summary, summary.classes[i]);
    it.non_tensor = non_tensor_terms(scenario, groups);
    it.margins = margin_terms(
        scenario, groups, rounding_term(scenario, {}, it.tensor_bytes()), it.tensor_bytes());
  }
}

void add_emitted(MemoryReport& report,
                 const Scenario& scenario,
                 const ModelGraph& graph,
                 const Plan& plan,
                 bool rows) {
  const PlannerContext context = make_context(scenario, graph);
  std::vector<std::int64_t> sizes;
  for (int index = 0; index < plan.class_count(); ++index) {
    MemoryLedger ledger = memory_ledger(plan, context, index, rows);
    RankMemory& it = report.ranks.emplace_back();
    it.class_index = index;
    it.peak = ledger.peak;
    it.bytes = ledger.peak.bytes;
    it.peak_text = peak_text(it.peak, graph, ledger.action);
    it.peak_section = section_text(plan, ledger.section);
    it.rows = std::move(ledger.rows);
    sizes.clear();
    for (const std::uint32_t id : ledger.live) {
      sizes.push_back(plan.buffers[static_cast<std::size_t>(index)][id].bytes());
    }
    const Groups groups = groups_of(plan, index);
    it.non_tensor = non_tensor_terms(scenario, groups);
    it.margins = margin_terms(
        scenario, groups, rounding_term(scenario, sizes, it.tensor_bytes()), it.tensor_bytes());
  }
}

}  // namespace

std::int64_t RankMemory::non_tensor_bytes() const {
  return sum(non_tensor);
}

std::int64_t RankMemory::upper_bound_bytes() const {
  return peak_bytes() + sum(margins);
}

bool MemoryReport::surely_fits() const {
  return std::all_of(ranks.begin(), ranks.end(), [this](const RankMemory& it) {
    return it.upper_bound_bytes() <= device_bytes;
  });
}

std::vector<int> MemoryReport::ranks_of(const RankMemory& of) const {
  std::vector<int> all;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.index(class_axes, rank) == of.class_index) {
      all.push_back(rank);
    }
  }
  return all;
}

MemoryReport memory_report(const Scenario& scenario, const MemoryReportOptions& options) {
  const std::shared_ptr<const ModelGraph> graph =
      build_model_graph(scenario.model, scenario.training);
  const PlanSummary summary = summarize_plan(scenario);
  MemoryReport report;
  report.parameters = graph->parameter_count();
  report.device_bytes = scenario.cluster.device.memory_bytes;
  report.mesh = summary.mesh;
  report.class_axes = summary.class_axes;
  std::int64_t operations = 0;
  for (const ProgramSummary& program : summary.classes) {
    operations += program.operations;
  }
  if (operations > options.max_operations) {
    add_counted(report, scenario, *graph, summary);
  } else if (options.plan != nullptr) {
    add_emitted(report, scenario, *graph, *options.plan, options.rows);
  } else {
    const Plan plan = make_plan(scenario, {.evaluate = false, .save = false});
    add_emitted(report, scenario, *graph, plan, options.rows);
  }
  finish(report);
  return report;
}

std::int64_t counted_peak_bytes(const Scenario& scenario) {
  return counted_peak_bytes(scenario, summarize_plan(scenario));
}

std::int64_t counted_peak_bytes(const Scenario& scenario, const PlanSummary& summary) {
  std::int64_t highest = 0;
  for (const ProgramSummary& program : summary.classes) {
    const Groups groups = groups_of(summary, program);
    highest =
        std::max(highest, total(program.peak.bytes) + sum(non_tensor_terms(scenario, groups)));
  }
  return highest;
}

}  // namespace lockstep
