#include "core/parameter_map.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "tests/support/catch.h"

namespace lockstep {
namespace {

ParameterDef definition(std::int64_t rows, std::int64_t columns, ParameterCut cut) {
  ParameterDef parameter;
  parameter.rows = rows;
  parameter.columns = columns;
  parameter.cut = cut;
  return parameter;
}

/// Logical index of every local element, -1 for padding, asked for in ranges of `step`.
std::vector<std::int64_t> indices(const ParameterDef& parameter,
                                  std::int64_t tensor,
                                  std::int64_t coordinate,
                                  std::int64_t step) {
  const ParameterMap map(parameter, tensor, coordinate);
  std::vector<std::int64_t> result(static_cast<std::size_t>(map.elements()), -1);
  for (std::int64_t first = 0; first < map.elements(); first += step) {
    map.for_each_run(first, std::min(step, map.elements() - first), [&](const ParameterRun& run) {
      REQUIRE(run.elements > 0);
      for (std::int64_t i = 0; i < run.elements; ++i) {
        result[static_cast<std::size_t>(run.local + i)] = run.logical + i;
      }
    });
  }
  return result;
}

}  // namespace

TEST_CASE("A whole parameter maps to itself in one run", "[parameter_map]") {
  const ParameterDef parameter = definition(3, 4, ParameterCut::kColumns);
  int runs = 0;
  ParameterMap(parameter, 1, 0).for_each_run(0, 12, [&](const ParameterRun& run) {
    ++runs;
    CHECK(run.elements == 12);
    CHECK(run.logical == 0);
  });
  CHECK(runs == 1);
}

TEST_CASE("A fused weight gives every rank its part of each projection", "[parameter_map]") {
  // Queries 4 rows, keys and values 2 each, by 2 ranks; rows of one element.
  ParameterDef parameter = definition(8, 1, ParameterCut::kRows);
  parameter.parts = {4, 2, 2};
  CHECK(indices(parameter, 2, 0, 100) == std::vector<std::int64_t>{0, 1, 4, 6});
  CHECK(indices(parameter, 2, 1, 100) == std::vector<std::int64_t>{2, 3, 5, 7});
}

TEST_CASE("Padding of a vocabulary has no place in the whole parameter", "[parameter_map]") {
  ParameterDef parameter = definition(5, 2, ParameterCut::kRows);
  parameter.vocabulary = true;
  CHECK(indices(parameter, 2, 1, 100) == std::vector<std::int64_t>{6, 7, 8, 9, -1, -1});
}

TEST_CASE("Ranks together hold every element once, however it is cut and asked for",
          "[parameter_map]") {
  for (const ParameterCut cut : {ParameterCut::kRows, ParameterCut::kColumns}) {
    for (const bool fused : {false, true}) {
      for (const std::int64_t tensor : {1, 2, 3, 6}) {
        for (const std::int64_t step : {1, 5, 7, 1000}) {
          ParameterDef parameter = definition(24, 12, cut);
          if (fused && cut == ParameterCut::kRows) {
            parameter.parts = {12, 6, 6};
          }
          std::vector<int> owners(24 * 12, 0);
          for (std::int64_t coordinate = 0; coordinate < tensor; ++coordinate) {
            for (const std::int64_t logical : indices(parameter, tensor, coordinate, step)) {
              REQUIRE(logical >= 0);
              ++owners[static_cast<std::size_t>(logical)];
            }
          }
          CHECK(std::accumulate(owners.begin(), owners.end(), 0) == 24 * 12);
          CHECK(*std::max_element(owners.begin(), owners.end()) == 1);
        }
      }
    }
  }
}

}  // namespace lockstep
