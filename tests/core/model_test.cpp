#include "core/model.h"

#include "core/limits.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

std::string problems_of(const ModelSpec& model) {
  Problems problems;
  validate(model, problems);
  return problems.one_line();
}

ModelSpec perceptron(std::vector<std::int64_t> widths, MlpNormKind norm = MlpNormKind::kNone) {
  ModelSpec model;
  model.family = ModelFamily::kMlp;
  model.widths = std::move(widths);
  model.mlp_norm = norm;
  return model;
}

}  // namespace

TEST_CASE("A model made of defaults is valid") {
  CHECK(problems_of(ModelSpec{}) == "");
}

TEST_CASE("Parameters of a small GPT counted by hand") {
  ModelSpec m;
  m.layers = 1;
  m.hidden = 4;
  m.heads = 2;
  m.kv_heads = 2;
  m.head_dim = 2;
  m.intermediate = 8;
  m.vocab = 10;
  m.max_position = 3;
  // wte 40, wpe 12, ln1 8, qkv 48+12, proj 16+4, ln2 8, up 32+8, down 32+4, ln_f 8
  CHECK(parameter_count(m) == 40 + 12 + 8 + 60 + 20 + 8 + 40 + 36 + 8);
  m.tied_embeddings = false;
  CHECK(parameter_count(m) == 232 + 40);
}

TEST_CASE("Parameters of a small grouped-query SwiGLU mixture counted by hand") {
  ModelSpec m;
  m.layers = 2;
  m.hidden = 4;
  m.heads = 2;
  m.kv_heads = 1;
  m.head_dim = 4;
  m.intermediate = 8;
  m.vocab = 10;
  m.norm = NormKind::kRmsNorm;
  m.activation = ActivationKind::kSwiGlu;
  m.position = PositionKind::kRope;
  m.qkv_bias = m.output_bias = m.mlp_bias = false;
  m.qk_norm = true;
  m.experts = 3;
  m.experts_per_token = 1;
  // per layer: q 32, k 16, v 16, o 32, q and k norm 8, two norms 8, router 12, experts 3 x 96
  const std::int64_t rest = 2 * (32 + 16 + 16 + 32 + 8 + 8 + 12) + 40 + 4;
  CHECK(parameter_count(m) == rest + 2 * 3 * 96);
  CHECK(active_parameter_count(m) == rest + 2 * 96);
}

TEST_CASE("Parameters of a perceptron: the last Linear has no norm") {
  CHECK(parameter_count(perceptron({3, 5, 2})) == 3 * 5 + 5 + 5 * 2 + 2);
  CHECK(parameter_count(perceptron({3, 5, 2}, MlpNormKind::kBatchNorm)) == 32 + 2 * 5);
}

TEST_CASE("All problems of a model are reported at once, with their keys") {
  ModelSpec m;
  m.layers = 0;
  m.hidden = -1;
  m.heads = 4;
  m.kv_heads = 3;
  m.norm_epsilon = std::numeric_limits<double>::quiet_NaN();
  const std::string text = problems_of(m);
  CHECK(text.find("model.layers: must be from 1 to 10000, found 0") != std::string::npos);
  CHECK(text.find("model.hidden: must be from 1 to 1048576, found -1") != std::string::npos);
  CHECK(text.find("model.kv_heads: must divide model.heads") != std::string::npos);
  CHECK(text.find("model.norm_epsilon: must be from 0 to 1, found nan") != std::string::npos);
}

TEST_CASE("Zero heads are refused without dividing by them") {
  ModelSpec m;
  m.heads = 0;
  m.kv_heads = 0;
  CHECK(problems_of(m).find("model.heads") != std::string::npos);
}

TEST_CASE("Experts and experts per token go together") {
  ModelSpec m;
  m.experts = 4;
  CHECK(problems_of(m).find("model.experts_per_token: must be at least 1") == 0);
  m.experts_per_token = 5;
  CHECK(problems_of(m).find("model.experts_per_token: must not exceed") == 0);
  m.experts_per_token = 4;
  CHECK(problems_of(m) == "");
  m.experts = 0;
  CHECK(problems_of(m).find("model.experts_per_token: must not exceed") == 0);
}

TEST_CASE("Settings of the other family are refused") {
  ModelSpec m;
  m.widths = {1, 2};
  m.mlp_norm = MlpNormKind::kBatchNorm;
  CHECK(problems_of(m).find("model.widths: is for model.family \"mlp\" only") == 0);
  CHECK(problems_of(perceptron({7})).find("model.widths: needs at least") == 0);
  CHECK(problems_of(perceptron({7, -1})).find("model.widths[1]: must be from 1") == 0);
}

TEST_CASE("Rotary positions need an even head") {
  ModelSpec m;
  m.head_dim = 5;
  CHECK(problems_of(m) == "");
  m.position = PositionKind::kRope;
  CHECK(problems_of(m).find("model.head_dim: must be even") == 0);
}

TEST_CASE("The largest numbers a file can hold saturate instead of overflowing") {
  ModelSpec m;
  m.layers = m.hidden = m.heads = m.kv_heads = m.head_dim = m.intermediate = m.vocab = kSaturated;
  m.max_position = m.experts = m.experts_per_token = kSaturated;
  CHECK(parameter_count(m) == kSaturated);
  CHECK(active_parameter_count(m) == kSaturated);
  CHECK_FALSE(problems_of(m).empty());
}

TEST_CASE("A model inside every single limit but too large altogether is refused") {
  ModelSpec m;
  m.layers = kMaxLayers;
  m.hidden = kMaxHidden;
  m.intermediate = kMaxIntermediate;
  CHECK(problems_of(m) ==
        "model: has more than 2^50 parameters, the limit of Lockstep's "
        "arithmetic");
}

TEST_CASE("Many problems are counted, not all printed") {
  const std::vector<std::int64_t> widths(1000, 0);
  Problems problems;
  validate(perceptron(widths), problems);
  CHECK(problems.list().size() == 1000);
  const std::string line = problems.one_line();
  CHECK(line.find("; and 980 more") == line.size() - 14);
  CHECK(line.find('\n') == std::string::npos);
}
