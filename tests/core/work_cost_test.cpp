#include "core/work_cost.h"

#include <cmath>
#include <map>

#include "core/module_cost.h"
#include "core/planner/context.h"
#include "core/planner/planner.h"
#include "tests/support/catch.h"
#include "tests/support/scenarios.h"

using namespace lockstep;

namespace {

Scenario one_device(bool llama, AttentionKind attention) {
  Scenario scenario = llama ? test::tiny_llama() : test::tiny_gpt();
  scenario.training.attention = attention;
  scenario.training.clip_norm = 0;
  return resolved(scenario);
}

struct Sums {
  double forward_flops = 0;
  double backward_flops = 0;
  double forward_bytes = 0;
  double backward_bytes = 0;
};

/// Over the modules of the plan's steady step: what belongs to a module, so no optimizer.
Sums sums_of_plan(const Scenario& scenario) {
  const PlanSummary summary = summarize_plan(scenario);
  Sums sums;
  for (const OperationCount& entry : summary.classes.front().counts) {
    if (entry.kind != OperationKind::kCompute) {
      continue;
    }
    const WorkCost cost = work_cost(entry.work, summary.shapes[entry.shape], entry.dtype);
    const auto count = static_cast<double>(entry.count);
    if (entry.phase == Phase::kForward) {
      sums.forward_flops += count * cost.flops;
      sums.forward_bytes += count * cost.bytes;
    } else if (entry.phase == Phase::kBackward) {
      sums.backward_flops += count * cost.flops;
      sums.backward_bytes += count * cost.bytes;
    }
  }
  return sums;
}

Sums sums_of_modules(const Scenario& scenario) {
  const auto graph = build_model_graph(scenario.model, scenario.training);
  const PlannerContext context = make_context(scenario, *graph);
  Sums sums;
  for (std::int32_t module = 0; module < graph->module_count(); ++module) {
    const ModuleCost cost =
        module_cost(*graph, static_cast<std::uint32_t>(module), scenario.training, context.sizes);
    sums.forward_flops += cost.forward_flops;
    sums.backward_flops += cost.backward_input_flops + cost.backward_weight_flops;
    sums.forward_bytes += cost.forward_bytes;
    sums.backward_bytes += cost.backward_bytes;
  }
  return sums;
}

}  // namespace

TEST_CASE("Operations of a plan add up to the closed forms of its modules") {
  for (const bool llama : {false, true}) {
    for (const AttentionKind attention : {AttentionKind::kPlain, AttentionKind::kFlash}) {
      Scenario scenario = one_device(llama, attention);
      INFO(test::text_of(scenario));
      require_valid(scenario);
      const Sums plan = sums_of_plan(scenario);
      const Sums modules = sums_of_modules(scenario);
      CHECK(plan.forward_flops == modules.forward_flops);
      CHECK(plan.backward_flops == modules.backward_flops);
      // Closed forms know biases, which an operation's shape does not.
      CHECK(plan.forward_bytes == Approx(modules.forward_bytes).epsilon(0.05));
      CHECK(plan.backward_bytes == Approx(modules.backward_bytes).epsilon(0.05));
    }
  }
}

TEST_CASE("A weight gradient is computed in the type of the activations") {
  Scenario scenario = test::tiny_gpt();
  scenario.training.precision = Precision::kBf16;
  scenario.training.gradient_dtype = DType::kFp32;
  const PlanSummary summary = summarize_plan(resolved(scenario));
  int products = 0;
  for (const OperationCount& entry : summary.classes.front().counts) {
    if (entry.work == Work::kMatmulGradWeight || entry.work == Work::kMatmulGradInput) {
      CHECK(entry.dtype == DType::kBf16);
      ++products;
    }
  }
  CHECK(products > 0);
}

TEST_CASE("Products by hand: FLOPs, bytes and extents") {
  const Shape shape{{6, 12, 4, 1}};
  const WorkCost forward = work_cost(Work::kMatmul, shape, DType::kBf16);
  CHECK(forward.flops == 2 * 6 * 12 * 4);
  CHECK(forward.bytes == 2 * (6 * 4 + 12 * 4 + 6 * 12));
  CHECK((forward.m == 6 && forward.n == 12 && forward.k == 4 && forward.batch == 1));
  const WorkCost input = work_cost(Work::kMatmulGradInput, shape, DType::kBf16);
  CHECK((input.m == 6 && input.n == 4 && input.k == 12));
  const WorkCost weight = work_cost(Work::kMatmulGradWeight, shape, DType::kFp32);
  CHECK((weight.m == 12 && weight.n == 4 && weight.k == 6));
  CHECK(weight.bytes == 2 * forward.bytes);
  // Three experts share 6 rows; every expert's weight is read.
  const WorkCost experts = work_cost(Work::kMatmul, Shape{{6, 12, 4, 3}}, DType::kBf16);
  CHECK(experts.flops == forward.flops);
  CHECK(experts.bytes == 2 * (6 * 4 + 3 * 12 * 4 + 6 * 12));
  CHECK((experts.m == 2 && experts.batch == 3));
}

TEST_CASE("An optimizer reads and writes its fp32 states once") {
  const Shape shape{{1000}};
  CHECK(work_cost(Work::kSgd, shape, DType::kFp32).bytes == 4 * 3000);       // p, g -> p
  CHECK(work_cost(Work::kMomentum, shape, DType::kFp32).bytes == 4 * 5000);  // p, g, v -> p, v
  CHECK(work_cost(Work::kAdamW, shape, DType::kFp32).bytes == 4 * 7000);  // p, g, m, v -> p, m, v
  CHECK(work_cost(Work::kAdamW8bit, shape, DType::kFp32).bytes == 4 * 3000 + 4 * 1000);
}

TEST_CASE("Every work that moves data costs bytes, and only products and attention cost FLOPs") {
  const Shape shape{{8, 16, 4, 2, 32}};
  for (int i = 1; i <= static_cast<int>(Work::kCommit); ++i) {
    const auto work = static_cast<Work>(i);
    const WorkCost cost = work_cost(work, shape, DType::kFp32);
    INFO(name_of(work));
    const bool marks = work == Work::kUsedMap || work == Work::kDescribeModel ||
                       work == Work::kExpectIssued || work == Work::kCommit;
    CHECK((cost.bytes > 0) == !marks);
    const std::string name(name_of(work));
    const bool product =
        name.find("matmul") != std::string::npos || name.find("attention") != std::string::npos;
    CHECK((cost.flops > 0) == product);
    CHECK((cost.m > 0) == product);
    // Twice the element size never costs less.
    CHECK(work_cost(work, shape, DType::kFp64).bytes >= cost.bytes);
  }
}
