#include "core/scenario.h"

#include "core/cluster_presets.h"
#include "core/error.h"
#include "core/limits.h"
#include "core/model_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;

TEST_CASE("A scenario made of defaults is valid before and after it is resolved") {
  CHECK(validate(Scenario{}).one_line() == "");
  CHECK(validate(resolved(Scenario{})).one_line() == "");
}

TEST_CASE("Sequence length comes from the model unless it is set") {
  Scenario s;
  s.model = *find_model_preset("gpt2");
  CHECK(resolved(s).training.seq_len == 1024);
  s.training.seq_len = 128;
  CHECK(resolved(s).training.seq_len == 128);
  s.model = *find_model_preset("mlp-tiny");
  s.training.seq_len = 0;
  CHECK(resolved(s).training.seq_len == 1);
}

TEST_CASE("Accumulation comes from the global batch") {
  Scenario s;
  s.strategy.data.degree = 4;
  s.training.micro_batch = 2;
  s.training.global_batch = 512;
  const Scenario done = resolved(s);
  CHECK(done.training.accumulate == 64);
  CHECK(samples_per_step(done) == 512);
  CHECK(validate(done).one_line() == "");

  s.training.global_batch = 511;
  CHECK(resolved(s).training.accumulate == 1);
  CHECK(validate(resolved(s))
            .one_line()
            .find("training.global_batch: must be a multiple of "
                  "micro_batch x dp (global_batch 511, micro_batch 2, "
                  "accumulate 1, dp 4)") == 0);
  s.training.global_batch = 512;
  s.training.accumulate = 3;
  CHECK(validate(resolved(s)).one_line().find("training.accumulate: contradicts") == 0);
}

TEST_CASE("Nodes grow with the world unless they were set") {
  Scenario s;
  s.cluster = *find_cluster_preset("dgx-h100");
  s.strategy.data.degree = 100;
  CHECK(resolved(s).cluster.nodes == 13);
  CHECK(validate(resolved(s)).one_line() == "");
  s.cluster.nodes = 12;
  CHECK(resolved(s).cluster.nodes == 12);
  CHECK(validate(resolved(s)).one_line().find("cluster.nodes: ") == 0);
  s.strategy.data.degree = 8;
  s.cluster.nodes = 1;
  CHECK(resolved(s).cluster.nodes == 1);
}

TEST_CASE("Resolving twice changes nothing") {
  Scenario s;
  s.model = *find_model_preset("llama-3.1-8b");
  s.strategy.data.degree = 64;
  s.training.global_batch = 1024;
  const Scenario once = resolved(s);
  const Scenario twice = resolved(once);
  CHECK(twice.training.seq_len == once.training.seq_len);
  CHECK(twice.training.accumulate == once.training.accumulate);
  CHECK(twice.cluster.nodes == once.cluster.nodes);
}

TEST_CASE("Absurd numbers are resolved and refused without overflow") {
  for (const std::int64_t value : {kSaturated, -kSaturated - 1, std::int64_t{0}}) {
    Scenario s;
    s.model.layers = s.model.hidden = s.model.heads = s.model.kv_heads = s.model.vocab = value;
    s.model.head_dim = s.model.intermediate = s.model.max_position = s.model.experts = value;
    s.cluster.nodes = s.cluster.devices_per_node = s.cluster.nics_per_node = value;
    s.cluster.device.memory_bytes = value;
    s.training.seq_len = s.training.micro_batch = s.training.accumulate = value;
    s.training.global_batch = value;
    s.training.unused = {{value, {value}, {value}}};
    s.strategy.data.degree = s.strategy.data.replicate = s.strategy.data.reshard_group = value;
    s.strategy.tensor.degree = s.strategy.pipeline.degree = s.strategy.pipeline.chunks = value;
    s.strategy.pipeline.layers_per_stage = {value, value};
    s.strategy.context = s.strategy.expert = value;
    for (const DataKind kind : {DataKind::kDdp, DataKind::kHsdp}) {
      s.strategy.data.kind = kind;
      s.strategy.data.reshard = kind == DataKind::kHsdp ? Reshard::kGroup : Reshard::kOn;
      CHECK(validate(resolved(s)).list().size() > 10);
    }
  }
}

TEST_CASE("An invalid scenario is one line of bad input") {
  Scenario s;
  s.model.layers = 0;
  s.training.micro_batch = 0;
  try {
    require_valid(s);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kBadInput);
    const std::string text = error.what();
    CHECK(text.find("[scenario] model.layers: must be from 1 to 10000, found 0; ") == 0);
    CHECK(text.find("training.micro_batch") != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  }
}
