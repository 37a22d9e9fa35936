#include "tests/core/check/tiny_plans.h"
#include "tests/support/catch.h"

using namespace lockstep;
using namespace lockstep::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<std::string> messages_after(const std::function<void(Program&, Program&)>& breaks) {
  Plan plan = two_stage_plan();
  breaks(program_of(plan, kStepSection, 0), program_of(plan, kStepSection, 1));
  std::vector<std::string> messages;
  for (const PlanProblem& problem : problems_of(plan, PlanRule::kMessage)) {
    messages.push_back(problem.message);
  }
  return messages;
}

std::uint32_t nth_send(const Program& program, int nth) {
  return find_operation(program, is_kind(OperationKind::kSend), nth);
}

std::uint32_t nth_recv(const Program& program, int nth) {
  return find_operation(program, is_kind(OperationKind::kRecv), nth);
}

}  // namespace

TEST_CASE("a send without a recv is reported with the rank that does not receive") {
  const auto messages = messages_after(
      [](Program&, Program& second) { remove_operation(second, nth_recv(second, 1)); });
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0],
             ContainsSubstring("send to stage 1 32 fp32 tag 1, h.0.mlp, micro-batch 1"));
  CHECK_THAT(messages[0], ContainsSubstring("rank 0: rank 2 never receives it"));
}

TEST_CASE("a recv without a send is reported with the rank that does not send") {
  const auto messages =
      messages_after([](Program& first, Program&) { remove_operation(first, nth_send(first, 0)); });
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], ContainsSubstring("recv from stage 0 32 fp32 tag 0, h.1.mlp"));
  CHECK_THAT(messages[0], ContainsSubstring("rank 2: rank 0 never sends it"));
}

TEST_CASE("a tag that is used twice in one direction is reported") {
  const auto messages = messages_after([](Program& first, Program& second) {
    first.operations[nth_send(first, 1)].tag = 0;
    second.operations[nth_recv(second, 1)].tag = 0;
  });
  REQUIRE(messages.size() == 2);
  CHECK_THAT(messages[0], ContainsSubstring("the message was sent before, by #"));
  CHECK_THAT(messages[1], ContainsSubstring("the message was received before, by #"));
}

TEST_CASE("both ends agree in count and type") {
  const auto counts = messages_after(
      [](Program& first, Program&) { first.operations[nth_send(first, 0)].elements = 16; });
  REQUIRE(counts.size() == 1);
  CHECK_THAT(counts[0],
             ContainsSubstring("recv from stage 0 32 fp32 tag 0") &&
                 ContainsSubstring("rank 2: rank 0 sends 16 fp32"));
  const auto types = messages_after(
      [](Program& first, Program&) { first.operations[nth_send(first, 0)].dtype = DType::kBf16; });
  REQUIRE(types.size() == 1);
  CHECK_THAT(types[0], ContainsSubstring("rank 0 sends 32 bf16"));
}

TEST_CASE("tags of the two directions are independent") {
  const auto messages = messages_after([](Program& first, Program& second) {
    for (int m = 0; m < kMicroBatches; ++m) {
      first.operations[nth_recv(first, m)].tag -= 16;
      second.operations[nth_send(second, m)].tag -= 16;
    }
  });
  CHECK(messages.empty());
}
