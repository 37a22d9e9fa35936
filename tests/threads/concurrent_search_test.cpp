// A search on several threads: what they share is read only. The preset tsan looks at it.
#include "core/cluster_presets.h"
#include "core/model_presets.h"
#include "simulator/search.h"
#include "tests/support/catch.h"

namespace lockstep::sim {
namespace {

TEST_CASE("threads of a search share nothing that they write") {
  Scenario base;
  base.model = *find_model_preset("gpt2-tiny");
  base.cluster = *find_cluster_preset("dgx-h100");
  base.training.seq_len = 64;
  base.training.global_batch = 8;
  SearchSpace space;
  space.devices = 4;
  space.micro_batch = {1};
  const SearchResult one = search(resolved(base), space, {4, 1});
  const SearchResult four = search(resolved(base), space, {4, 4});
  REQUIRE(one.best.size() == four.best.size());
  for (std::size_t i = 0; i < one.best.size(); ++i) {
    CHECK(one.best[i].simulated_s == four.best[i].simulated_s);
  }
}

}  // namespace
}  // namespace lockstep::sim
