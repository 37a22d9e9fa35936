// Each logical element is owned exactly once under every tp x pp x dp split; replicas, tied copies
// and padding are counted apart. Proven by walking intervals: the pieces of all coordinates follow
// each other without gap or overlap, on the data axis inside a rank's parameter and on the tensor
// axis inside the logical one. Equal blocks are walked once.
#include <algorithm>
#include <vector>

#include "core/layout.h"
#include "core/model_graph.h"
#include "core/model_presets.h"
#include "tests/support/catch.h"

using namespace lockstep;

namespace {

/// Elements held by all ranks together, by why they are there.
struct Tally {
  std::int64_t owned = 0;       ///< each logical element once
  std::int64_t replicas = 0;    ///< not cut, so on every tensor-parallel rank
  std::int64_t tied = 0;        ///< the head's copy of the embedding
  std::int64_t vocabulary = 0;  ///< rows that only fill up the last ranks
  std::int64_t shards = 0;      ///< what a layout adds to make equal shards

  std::int64_t held() const { return owned + replicas + tied + vocabulary + shards; }
  void add(const Tally& other, std::int64_t times) {
    owned += times * other.owned;
    replicas += times * other.replicas;
    tied += times * other.tied;
    vocabulary += times * other.vocabulary;
    shards += times * other.shards;
  }
};

using BuildLayout = void (*)(std::span<const ParameterExtent>, std::int32_t, Layout&);

void by_rows(std::span<const ParameterExtent> parameters, std::int32_t dp, Layout& layout) {
  shard_dim0(parameters, dp, layout);
}
void flat(std::span<const ParameterExtent> parameters, std::int32_t dp, Layout& layout) {
  flat_partition(parameters, dp, {1, dp}, layout);
}
void flat_each(std::span<const ParameterExtent> parameters, std::int32_t dp, Layout& layout) {
  flat_per_parameter(parameters, dp, layout);
}
void megatron(std::span<const ParameterExtent> parameters, std::int32_t dp, Layout& layout) {
  distributed_optimizer_bucket(parameters, dp, false, layout);
}
constexpr BuildLayout kLayouts[] = {by_rows, flat, flat_each, megatron};

/// What data-parallel coordinates hold of one rank's parameter: valid elements and those behind.
struct Held {
  std::int64_t valid = 0;
  std::int64_t padding = 0;
};

Held walk(const LayoutEntry& entry, std::int32_t dp, std::int64_t elements, std::int64_t valid) {
  Held held;
  std::int64_t next = 0;
  for (std::int32_t r = 0; r < dp; ++r) {
    for_each_piece(entry, r, [&](const LayoutPiece& piece) {
      REQUIRE(piece.first == next);
      next += piece.elements;
      const std::int64_t good = std::clamp<std::int64_t>(valid - piece.first, 0, piece.elements);
      held.valid += good;
      held.padding += piece.elements - good;
    });
  }
  REQUIRE(next == elements);
  return held;
}

/// The parameters of one segment on all ranks of a tensor x data grid.
Tally tally_segment(const SegmentTemplate& form,
                    std::int64_t t,
                    std::int32_t dp,
                    BuildLayout build,
                    bool tied_is_alias) {
  std::vector<ParameterExtent> extents;
  std::vector<const ParameterDef*> definitions;
  for (const ParameterDef& definition : form.parameters) {
    if (definition.tied && tied_is_alias) {
      continue;
    }
    const auto id = static_cast<std::int32_t>(definitions.size());
    extents.push_back({id, local_rows(definition, t), local_columns(definition, t)});
    definitions.push_back(&definition);
  }
  Layout layout;
  build(extents, dp, layout);
  Tally tally;
  tally.shards = t * layout.padding_elements();
  for (const LayoutEntry& entry : layout.entries) {
    const ParameterDef& definition = *definitions[static_cast<std::size_t>(entry.parameter)];
    const std::int64_t rows = local_rows(definition, t);
    const std::int64_t columns = local_columns(definition, t);
    if (definition.cut == ParameterCut::kColumns) {
      REQUIRE(columns * t == definition.columns);
    }
    std::int64_t next_row = 0;
    for (std::int64_t c = 0; c < t; ++c) {
      const std::int64_t valid = valid_local_rows(definition, t, c);
      if (definition.cut == ParameterCut::kRows && valid > 0) {
        REQUIRE(c * rows == next_row);
        next_row += valid;
      }
      const Held held = walk(entry, dp, rows * columns, valid * columns);
      const bool copy = definition.cut == ParameterCut::kNone && c > 0;
      (definition.tied ? tally.tied : copy ? tally.replicas : tally.owned) += held.valid;
      tally.vocabulary += held.padding;
    }
    REQUIRE((definition.cut != ParameterCut::kRows || next_row == definition.rows));
  }
  REQUIRE(tally.held() == t * dp * layout.elements_per_coordinate);
  return tally;
}

/// All stages: contiguous runs of segments, as even as possible.
Tally tally_model(
    const ModelGraph& graph, std::int64_t t, std::int64_t pp, std::int32_t dp, BuildLayout build) {
  std::vector<Tally> of_form;
  for (const SegmentTemplate& form : graph.templates) {
    of_form.push_back(tally_segment(form, t, dp, build, pp == 1));
  }
  const auto segments = static_cast<std::int64_t>(graph.segments.size());
  Tally all;
  for (std::int64_t stage = 0; stage < pp; ++stage) {
    for (std::int64_t s = stage * segments / pp; s < (stage + 1) * segments / pp; ++s) {
      all.add(of_form[static_cast<std::size_t>(graph.segments[static_cast<std::size_t>(s)].form)],
              1);
    }
  }
  return all;
}

bool legal(const ModelSpec& model, std::int64_t t) {
  return t == 1 || (model.family == ModelFamily::kTransformer && model.heads % t == 0 &&
                    model.kv_heads % t == 0 && model.intermediate % t == 0);
}

}  // namespace

TEST_CASE("Every logical element of every preset is owned once under every split") {
  int splits = 0;
  for (const ModelPreset& preset : model_presets()) {
    const ModelSpec& model = preset.model;
    const auto graph = build_model_graph(model, {});
    const std::int64_t logical = parameter_count(model);
    for (const std::int64_t t : {1, 2, 4, 8}) {
      for (const std::int64_t pp : {1, 2, 4, 8}) {
        if (!legal(model, t) || static_cast<std::int64_t>(graph->segments.size()) < pp) {
          continue;
        }
        for (const std::int32_t dp : {1, 3, 8}) {
          for (const BuildLayout build : kLayouts) {
            INFO(model.name << " tp " << t << " pp " << pp << " dp " << dp);
            const Tally tally = tally_model(*graph, t, pp, dp, build);
            REQUIRE(tally.owned == logical);
            const bool transformer = model.family == ModelFamily::kTransformer;
            const std::int64_t table = transformer ? model.vocab * model.hidden : 0;
            const bool has_copy = transformer && model.tied_embeddings && pp > 1;
            REQUIRE(tally.tied == (has_copy ? table : 0));
            const std::int64_t tables = !transformer                         ? 0
                                        : !model.tied_embeddings || has_copy ? 2
                                                                             : 1;
            REQUIRE(tally.vocabulary ==
                    tables * (t * ceil_divide(model.vocab, t) - model.vocab) * model.hidden);
            ++splits;
          }
        }
      }
    }
  }
  REQUIRE(splits > 2000);
}

TEST_CASE(
    "What every tensor-parallel rank holds is norms, positions and biases of row-cut products") {
  // GPT-2: 12 layers of two LayerNorms (2h each), c_proj and mlp.c_proj biases (h each), ln_f, wpe.
  const auto gpt2 = build_model_graph(*find_model_preset("gpt2"), {});
  const std::int64_t shared = 12 * (2 * 2 * 768 + 2 * 768) + 2 * 768 + 1024 * 768;
  CHECK(tally_model(*gpt2, 2, 1, 1, by_rows).replicas == shared);
  CHECK(tally_model(*gpt2, 4, 2, 1, by_rows).replicas == 3 * shared);
  // Llama: two norms per layer and the last; Mixtral's router beside them.
  const auto llama = build_model_graph(*find_model_preset("llama-3.1-8b"), {});
  CHECK(tally_model(*llama, 8, 1, 3, flat).replicas == 7 * (32 * 2 + 1) * 4096);
  const auto mixtral = build_model_graph(*find_model_preset("mixtral-8x7b"), {});
  CHECK(tally_model(*mixtral, 8, 4, 8, flat).replicas == 7 * (32 * (2 + 8) + 1) * 4096);
  // Qwen3's norms of heads are whole on every rank.
  const auto qwen = build_model_graph(*find_model_preset("qwen3-8b"), {});
  CHECK(tally_model(*qwen, 2, 1, 1, flat).replicas == (36 * 2 + 1) * 4096 + 36 * 2 * 128);
}

TEST_CASE("The last ranks of a vocabulary hold what is left, down to nothing") {
  ParameterDef table;
  table.rows = 9;
  table.columns = 4;
  table.vocabulary = true;
  table.cut = ParameterCut::kRows;
  CHECK(local_rows(table, 8) == 2);
  const std::int64_t expected[] = {2, 2, 2, 2, 1, 0, 0, 0};
  for (std::int64_t c = 0; c < 8; ++c) {
    CHECK(valid_local_rows(table, 8, c) == expected[c]);
  }
  table.cut = ParameterCut::kNone;
  CHECK(valid_local_rows(table, 8, 7) == 9);
}
