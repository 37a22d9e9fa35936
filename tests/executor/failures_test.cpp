// What a rank is told when the others do not do their part.
#include <chrono>
#include <vector>

#include "executor/cpu_device.h"
#include "executor/local_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/spawn_ranks.h"

namespace lockstep::exec {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;

constexpr StreamId kData = stream_id(Stream::kData);

Transfer all_reduce(std::vector<float>& x) {
  return {.reduction = Reduction::kSum,
          .elements = static_cast<std::int64_t>(x.size()),
          .in = x.data(),
          .out = x.data(),
          .label = {1, 0, 42}};
}

/// Runs `op(rank)` on each rank once after a first, common all-reduce.
template <typename Make>
std::vector<std::string> after_one(int ranks, const LocalOptions& options, Make make) {
  auto communicators = make_local_communicators(ranks, options);
  return test::failures_of(ranks, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    std::vector<float> x(4096);
    Transfer first = all_reduce(x);
    first.label.index = 7;
    communicator.run(first);
    Transfer op = all_reduce(x);
    if (make(rank, op)) {
      communicator.run(op);
    }
  });
}

TEST_CASE("a timeout names rank, operation, number, and who is missing") {
  auto communicators = make_local_communicators(3, {.timeout = 100ms});
  const auto errors = test::exceptions_of(3, [&](int rank) {
    std::vector<float> x(10);
    communicators[static_cast<std::size_t>(rank)]->run(all_reduce(x));
    if (rank != 1) {
      communicators[static_cast<std::size_t>(rank)]->run(all_reduce(x));
    }
  });
  CHECK(errors[1] == nullptr);
  int timeouts = 0;
  for (const int rank : {0, 2}) {
    try {
      std::rethrow_exception(errors[static_cast<std::size_t>(rank)]);
    } catch (const Error& error) {
      CHECK(error.exit_code() == 6);
      CHECK_THAT(error.what(), ContainsSubstring("rank " + std::to_string(rank)));
      CHECK_THAT(error.what(), ContainsSubstring("all_reduce of 10 fp32"));
      CHECK_THAT(error.what(), ContainsSubstring("operation 42"));
      CHECK_THAT(error.what(), ContainsSubstring("#1 of group {0, 1, 2}"));
      CHECK_THAT(error.what(), ContainsSubstring("missing rank 1 (at #1)"));
      ++timeouts;
    }
  }
  CHECK(timeouts == 2);
  // Who comes too late must not read the buffers of those who have left.
  std::vector<float> x(10);
  CHECK_THROWS_WITH(communicators[1]->run(all_reduce(x)), ContainsSubstring("missing rank 1"));
}

TEST_CASE("a recv that nobody answers names the sender") {
  auto communicators = make_local_communicators(2, {.timeout = 50ms});
  std::vector<float> x(10);
  Transfer op = all_reduce(x);
  op.kind = OperationKind::kRecv;
  op.peer = 0;
  op.tag = 5;
  CHECK_THROWS_WITH(communicators[1]->run(op),
                    ContainsSubstring("recv from rank 0 of 10 fp32, tag 5") &&
                        ContainsSubstring("missing rank 0"));
}

TEST_CASE("members that came for something else are told both sides before data moves") {
  struct Change {
    const char* text;
    void (*make)(Transfer&);
  };
  const Change kChanges[] = {
      {"broadcast of 4096",
       [](Transfer& op) {
         op.collective = Collective::kBroadcast;
         op.reduction = Reduction::kNone;
         op.peer = 0;
       }},
      {"of 4095", [](Transfer& op) { op.elements = 4095; }},
      {"of 12 fp32", [](Transfer& op) { op.elements = 12; }},
      {"int32", [](Transfer& op) { op.dtype = DType::kInt32; }},
      {"max", [](Transfer& op) { op.reduction = Reduction::kMax; }},
      {"operation 43", [](Transfer& op) { op.label.index = 43; }},
      {"section 2", [](Transfer& op) { op.label.section = 2; }},
      {"ring", [](Transfer& op) { op.algorithm = Algorithm::kRing; }},
  };
  for (const Change& change : kChanges) {
    const auto errors = after_one(3, {}, [&](int rank, Transfer& op) {
      if (rank == 1) {
        change.make(op);
      }
      return true;
    });
    for (const std::string& error : errors) {
      CHECK_THAT(error, ContainsSubstring("do not agree on #1"));
      CHECK_THAT(error, ContainsSubstring("all_reduce of 4096 fp32, sum"));
      CHECK_THAT(error, ContainsSubstring("rank 1 calls"));
      CHECK_THAT(error, ContainsSubstring(change.text));
    }
  }
}

TEST_CASE("members of different classes may have the operation at different places") {
  const auto errors = after_one(2, {}, [](int rank, Transfer& op) {
    op.label = {1, rank, 40 + rank};
    return true;
  });
  CHECK(errors == std::vector<std::string>(2));
}

TEST_CASE("a message of the wrong size is told to both ends") {
  for (const bool late_receiver : {false, true}) {
    auto communicators = make_local_communicators(2);
    const auto errors = test::failures_of(2, [&](int rank) {
      std::vector<float> x(10);
      Transfer op = all_reduce(x);
      op.kind = rank == 0 ? OperationKind::kSend : OperationKind::kRecv;
      op.peer = static_cast<std::int16_t>(1 - rank);
      op.elements = rank == 0 ? 4 : 6;
      if ((rank == 1) == late_receiver) {
        std::this_thread::sleep_for(20ms);
      }
      communicators[static_cast<std::size_t>(rank)]->run(op);
    });
    // A send that nobody waits for has gone; its receiver finds it.
    CHECK(errors[0].empty() == late_receiver);
    CHECK_THAT(errors[1], ContainsSubstring("send of 4 fp32"));
    CHECK_THAT(errors[1], ContainsSubstring("recv of 6 fp32"));
  }
}

TEST_CASE("one rank's failure wakes all others at once, in every group") {
  constexpr int kRanks = 4;
  auto communicators = make_local_communicators(kRanks);  // timeout: minutes
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = test::failures_of(kRanks, [&](int rank) {
    Communicator& world = *communicators[static_cast<std::size_t>(rank)];
    const auto pair = world.split(rank / 2, rank);
    std::vector<float> x(5000);
    if (rank == 3) {
      std::this_thread::sleep_for(20ms);
      world.abort("out of memory");
      return;
    }
    Transfer op = all_reduce(x);
    if (rank == 0) {  // waits for a message of its pair
      op.kind = OperationKind::kRecv;
      op.peer = 1;
      pair->run(op);
    } else {
      world.run(op);
    }
  });
  CHECK(std::chrono::steady_clock::now() - begin < 20s);  // at once, on a busy machine too
  for (const int rank : {0, 1, 2}) {
    CHECK_THAT(errors[static_cast<std::size_t>(rank)],
               ContainsSubstring("rank 3 failed: out of memory"));
  }
}

TEST_CASE("a rank that waits in the middle of a ring is woken too") {
  auto communicators = make_local_communicators(3, {.link = {1e4, {}}});  // 40 s for what follows
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = test::failures_of(3, [&](int rank) {
    std::vector<float> x(100'000);
    Transfer op = all_reduce(x);
    op.algorithm = Algorithm::kRing;
    if (rank == 2) {
      std::thread killer([&] {
        std::this_thread::sleep_for(30ms);
        communicators[2]->abort("pulled the plug");
      });
      try {
        communicators[2]->run(op);
      } catch (...) {
        killer.join();
        throw;
      }
      killer.join();
    } else {
      communicators[static_cast<std::size_t>(rank)]->run(op);
    }
  });
  CHECK(std::chrono::steady_clock::now() - begin < 20s);  // at once, on a busy machine too
  for (const std::string& error : errors) {
    CHECK_THAT(error, ContainsSubstring("pulled the plug"));
  }
}

TEST_CASE("a failed task aborts the job through its device, with the device's error first") {
  auto communicators = make_local_communicators(2);
  const auto errors = test::failures_of(2, [&](int rank) {
    Communicator& communicator = *communicators[static_cast<std::size_t>(rank)];
    CpuDevice device;
    device.on_failure([&](const char* what) { communicator.abort(what); });
    std::vector<float> x(5000);
    communicator.issue(device, kData, all_reduce(x));
    if (rank == 0) {
      device.enqueue(stream_id(Stream::kTensor),
                     make_task([] { throw BadInputError("loader", "no more data"); }));
      std::this_thread::sleep_for(10ms);
    }
    communicator.issue(device, kData, all_reduce(x));
    if (rank == 0) {
      device.synchronize();
    } else {
      communicator.issue(device, kData, all_reduce(x));
      device.synchronize();
    }
  });
  CHECK_THAT(errors[0], ContainsSubstring("no more data"));
  CHECK_THAT(errors[1], ContainsSubstring("rank 0 failed: [loader] no more data"));
}

}  // namespace
}  // namespace lockstep::exec
