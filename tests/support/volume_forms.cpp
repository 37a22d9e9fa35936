#include "tests/support/volume_forms.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

namespace lockstep::test {

std::int64_t total(const std::vector<VolumeTerm>& terms) {
  return std::accumulate(
      terms.begin(), terms.end(), std::int64_t{0}, [](std::int64_t sum, const VolumeTerm& term) {
        return sum + term.bytes;
      });
}

std::string text_of(const Volumes& volumes) {
  std::string text;
  for (const auto& [key, terms] : volumes) {
    text += fmt::format("{} {} =", key, total(terms));
    for (const VolumeTerm& term : terms) {
      text += fmt::format(" {} {}", term.name, term.bytes);
    }
    text += "\n";
  }
  return text;
}

namespace {

enum class Cut { kNone, kRows, kColumns };

/// A parameter of the whole model.
struct Weight {
  std::int64_t rows = 0;
  std::int64_t columns = 1;
  Cut cut = Cut::kNone;
  bool per_head = false;    ///< each rank has only its heads' part of the gradient
  bool vocabulary = false;  ///< rows padded to a multiple of t
};

std::int64_t up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

class Form {
 public:
  Form(const Scenario& scenario, int stage) : s_(scenario), m_(scenario.model), stage_(stage) {
    if (is_mlp()) {
      for (std::size_t i = 0; i + 1 < m_.widths.size(); ++i) {
        const std::int64_t out = m_.widths[i + 1];
        std::vector<Weight> layer = {{out, m_.widths[i]}, {out}};
        const bool last = i + 2 == m_.widths.size();
        if (m_.mlp_norm != MlpNormKind::kNone && !last) {
          layer.push_back({out});
          layer.push_back({out});
        }
        segments_.push_back(layer);
      }
      return;
    }
    if (first()) {
      segments_.push_back({{m_.vocab, m_.hidden, Cut::kRows, false, true}});
      if (m_.position == PositionKind::kLearned) {
        segments_.back().push_back({m_.max_position, m_.hidden});
      }
    }
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      segments_.push_back(block());
    }
    if (last()) {
      segments_.push_back(norm());
      if (!m_.tied_embeddings || stages() > 1) {
        segments_.back().push_back({m_.vocab, m_.hidden, Cut::kRows, false, true});
      }
    }
  }

  Volumes volumes() {
    data_parallel();
    if (t() > 1) {
      tensor_parallel();
    }
    if (stages() > 1) {
      pipeline();
    }
    after_gradients();
    control();
    std::erase_if(volumes_, [](const auto& entry) { return total(entry.second) == 0; });
    return volumes_;
  }

 private:
  // ---- sizes -----------------------------------------------------------------------------------

  bool is_mlp() const { return m_.family == ModelFamily::kMlp; }
  const DataStrategy& data() const { return s_.strategy.data; }
  std::int64_t n() const { return data().degree; }
  std::int64_t replicas() const {
    return data().kind == DataKind::kHsdp ? data().replicate
           : data().reshard == Reshard::kGroup && data().kind == DataKind::kFsdp
               ? n() / data().reshard_group
               : 1;
  }
  std::int64_t shards() const { return data().kind == DataKind::kHsdp ? n() / replicas() : n(); }
  std::int64_t t() const { return s_.strategy.tensor.degree; }
  bool sequence() const { return s_.strategy.tensor.sequence_parallel && t() > 1; }
  std::int64_t stages() const { return s_.strategy.pipeline.degree; }
  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ == stages() - 1; }
  std::int64_t layers() const {
    const std::vector<std::int64_t>& list = s_.strategy.pipeline.layers_per_stage;
    if (!list.empty()) {
      return list[static_cast<std::size_t>(stage_)];
    }
    return m_.layers / stages() + (stage_ < m_.layers % stages() ? 1 : 0);
  }
  std::int64_t microbatches() const { return s_.training.accumulate; }
  std::int64_t rows() const {
    return s_.training.micro_batch * (is_mlp() ? 1 : s_.training.seq_len);
  }

  std::int64_t wide() const { return s_.training.precision == Precision::kFp64 ? 8 : 4; }
  std::int64_t e_parameter() const { return size_of(s_.training.parameter_dtype()); }
  std::int64_t e_activation() const { return size_of(s_.training.activation_dtype()); }
  std::int64_t e_gradient() const {
    const bool megatron =
        data().kind == DataKind::kZero1 && data().flavour == ZeroFlavour::kMegatron;
    return megatron ? std::max<std::int64_t>(e_parameter(), 4) : e_parameter();
  }

  // ---- parameters ------------------------------------------------------------------------------

  std::vector<Weight> norm() const {
    return m_.norm == NormKind::kLayerNorm ? std::vector<Weight>{{m_.hidden}, {m_.hidden}}
                                           : std::vector<Weight>{{m_.hidden}};
  }

  std::vector<Weight> block() const {
    const std::int64_t q = m_.heads * m_.head_dim;
    const std::int64_t kv = m_.kv_heads * m_.head_dim;
    const std::int64_t experts = std::max<std::int64_t>(m_.experts, 1);
    const std::int64_t f = experts * m_.intermediate;
    std::vector<Weight> weights = norm();
    const std::vector<Weight> second = norm();
    weights.insert(weights.end(), second.begin(), second.end());
    const auto add = [&](std::int64_t out, std::int64_t in, Cut cut, bool bias) {
      weights.push_back({out, in, cut});
      if (bias) {
        weights.push_back({out, 1, cut == Cut::kRows ? Cut::kRows : Cut::kNone});
      }
    };
    if (m_.qkv_bias) {  // GPT-2: one fused projection
      add(q + 2 * kv, m_.hidden, Cut::kRows, true);
    } else {
      add(q, m_.hidden, Cut::kRows, false);
      add(kv, m_.hidden, Cut::kRows, false);
      add(kv, m_.hidden, Cut::kRows, false);
    }
    add(m_.hidden, q, Cut::kColumns, m_.output_bias);
    if (m_.gated_mlp()) {
      add(f, m_.hidden, Cut::kRows, m_.mlp_bias);
    }
    add(f, m_.hidden, Cut::kRows, m_.mlp_bias);
    add(experts * m_.hidden, m_.intermediate, Cut::kColumns, m_.mlp_bias);
    if (m_.is_moe()) {
      add(m_.experts, m_.hidden, Cut::kNone, false);
    }
    if (m_.qk_norm) {
      weights.push_back({m_.head_dim, 1, Cut::kNone, true});
      weights.push_back({m_.head_dim, 1, Cut::kNone, true});
    }
    return weights;
  }

  std::int64_t local_rows(const Weight& w) const {
    const std::int64_t all = w.vocabulary ? up(w.rows, t()) : w.rows;
    return w.cut == Cut::kRows ? all / t() : all;
  }
  std::int64_t local(const Weight& w) const {
    return local_rows(w) * (w.cut == Cut::kColumns ? w.columns / t() : w.columns);
  }
  std::int64_t local(const std::vector<Weight>& weights) const {
    std::int64_t sum = 0;
    for (const Weight& w : weights) {
      sum += local(w);
    }
    return sum;
  }
  std::int64_t all_parameters() const {
    std::int64_t sum = 0;
    for (const std::vector<Weight>& segment : segments_) {
      sum += local(segment);
    }
    return sum;
  }
  std::int64_t parameter_tensors() const {
    std::int64_t count = 0;
    for (const std::vector<Weight>& segment : segments_) {
      count += static_cast<std::int64_t>(segment.size());
    }
    return count;
  }
  /// Gathered size of a unit whose parameters are cut along dimension 0, with padding.
  std::int64_t cut_by_rows(const std::vector<Weight>& weights) const {
    std::int64_t sum = 0;
    for (const Weight& w : weights) {
      sum += up(local_rows(w), shards()) * (local(w) / local_rows(w));
    }
    return sum;
  }
  std::int64_t cut_flat(const std::vector<Weight>& weights) const {
    std::int64_t sum = 0;
    for (const Weight& w : weights) {
      sum += up(local(w), shards());
    }
    return sum;
  }

  void term(const std::string& key, const char* name, std::int64_t bytes) {
    if (bytes != 0) {
      volumes_[key].push_back({name, bytes});
    }
  }
  /// A size without padding and what padding adds to it.
  void padded_term(const std::string& key,
                   const char* name,
                   std::int64_t bytes,
                   std::int64_t padded) {
    term(key, name, bytes);
    term(key, "padding", padded - bytes);
  }

  // ---- data parallel ---------------------------------------------------------------------------

  void data_parallel() {
    if (n() == 1) {
      return;
    }
    switch (data().kind) {
      case DataKind::kDp:
        return single_process();
      case DataKind::kDdp:
        return ddp();
      case DataKind::kZero1:
        if (data().flavour == ZeroFlavour::kZeroRedundancyOptimizer) {
          ddp();
          return term("broadcast dp", "parameters", all_parameters() * e_parameter());
        }
        return zero(1);
      case DataKind::kZero2:
        return zero(microbatches());
      case DataKind::kZero3:
        return zero3();
      case DataKind::kFsdp:
      case DataKind::kHsdp:
        return fsdp();
    }
  }

  void single_process() {
    const std::int64_t m = microbatches();
    term("broadcast dp", "parameters", m * all_parameters() * e_parameter());
    term("scatter dp", "inputs", m * rows() * m_.widths.front() * e_activation());
    term("scatter dp", "labels", m * rows() * 8);
    term("gather dp", "outputs", m * rows() * m_.widths.back() * wide());
    term("reduce dp", "gradients", m * all_parameters() * e_gradient());
  }

  void ddp() {
    const std::int64_t passes = data().no_sync ? 1 : microbatches();
    term("all_reduce dp", "gradients", passes * all_parameters() * e_gradient());
    if (data().find_unused_parameters && !data().static_graph) {
      term("all_reduce dp", "used map", passes * parameter_tensors() * 4);
    }
    if (!is_mlp() || m_.mlp_norm == MlpNormKind::kNone) {
      return;
    }
    for (std::size_t i = 1; i + 1 < m_.widths.size(); ++i) {
      const std::int64_t width = m_.widths[i];
      if (data().broadcast_buffers) {
        term("broadcast dp", "statistics", passes * (2 * width * wide() + 8));
      }
      if (m_.mlp_norm == MlpNormKind::kSyncBatchNorm) {
        term("all_reduce dp", "norm", microbatches() * ((2 * width + 1) + 2 * width) * wide());
      }
    }
  }

  /// ZeRO 1 and 2 with one bucket; copies of a tied weight have one of their own.
  void zero(std::int64_t reductions) {
    const std::int64_t vocabulary = tied_copy() ? up(m_.vocab, t()) / t() * m_.hidden : 0;
    const std::int64_t rest = all_parameters() - vocabulary;
    std::int64_t padded = 0;
    if (data().flavour == ZeroFlavour::kMegatron) {
      padded = megatron_bucket();
    } else {
      const std::int64_t unit = (data().flavour == ZeroFlavour::kDeepSpeed ? 2 : 1) * n();
      padded = up(rest, unit) + up(vocabulary, unit);
    }
    const char* kind =
        data().flavour == ZeroFlavour::kDeepSpeed ? "all_reduce dp" : "reduce_scatter dp";
    padded_term(kind,
                "gradients",
                reductions * all_parameters() * e_gradient(),
                reductions * padded * e_gradient());
    padded_term(
        "all_gather dp", "parameters", all_parameters() * e_parameter(), padded * e_parameter());
  }

  /// Starts at multiples of 64, the parameter registered first (the last one) ends where it ends.
  std::int64_t megatron_bucket() const {
    std::int64_t end = 0;
    std::int64_t apart = 0;
    const std::int64_t unit = std::lcm<std::int64_t>(n(), 128);
    bool first_of_all = true;
    for (const std::vector<Weight>& segment : segments_) {
      for (const Weight& w : segment) {
        if (w.vocabulary && tied_copy()) {
          apart = up(local(w), unit);
          continue;
        }
        end += first_of_all ? local(w) : up(local(w), 64);
        first_of_all = false;
      }
    }
    return up(end, unit) + apart;
  }

  void zero3() {
    std::vector<std::vector<Weight>> units = segments_;
    std::int64_t kept = 0;  // gathered once: the unit of embedding and head that share a weight
    if (!is_mlp() && m_.tied_embeddings) {
      std::vector<Weight> shared = segments_.front();
      shared.insert(shared.end(), segments_.back().begin(), segments_.back().end());
      kept = cut_flat(shared);
      units = {segments_.begin() + 1, segments_.end() - 1};
    }
    std::int64_t own = 0;
    for (const std::vector<Weight>& unit : units) {
      own += cut_flat(unit);
    }
    const std::int64_t m = microbatches();
    const std::int64_t gathered = (2 * own + kept) * e_activation();
    const std::int64_t whole =
        (2 * all_parameters() - (kept > 0 ? root_parameters() : 0)) * e_activation();
    padded_term("all_gather dp", "parameters", m * whole, m * gathered);
    padded_term("reduce_scatter dp",
                "gradients",
                m * all_parameters() * e_gradient(),
                m * (own + kept) * e_gradient());
  }

  std::int64_t root_parameters() const {
    return all_parameters() - (is_mlp() ? all_parameters() : layers() * local(block()));
  }

  void fsdp() {
    std::int64_t root = 0;
    std::int64_t blocks = 0;
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      const bool outside =
          !is_mlp() && ((first() && i == 0) || (last() && i + 1 == segments_.size()));
      (outside ? root : blocks) += cut_by_rows(segments_[i]);
    }
    const std::int64_t outside_blocks = is_mlp() ? 0 : root_parameters();
    const bool once = stages() > 1;
    const std::int64_t m = once ? 1 : microbatches();
    const bool again = !once && data().reshard != Reshard::kOff;
    const bool groups = data().kind == DataKind::kFsdp && replicas() > 1;
    const std::string all = groups ? " dp_replicate+dp" : " dp";
    const std::int64_t e = e_activation();
    padded_term(
        "all_gather" + all, "parameters", m * all_parameters() * e, m * (root + blocks) * e);
    if (again) {
      padded_term(std::string("all_gather dp"),
                  "parameters for backward",
                  m * (all_parameters() - outside_blocks) * e,
                  m * blocks * e);
    }
    const std::int64_t e_reduce =
        s_.training.reduce_dtype ? size_of(*s_.training.reduce_dtype) : wide();
    padded_term("reduce_scatter" + all,
                "gradients",
                m * all_parameters() * e_reduce,
                m * (root + blocks) * e_reduce);
    if (data().kind == DataKind::kHsdp && replicas() > 1) {
      padded_term("all_reduce dp_replicate",
                  "gradients",
                  m * all_parameters() / shards() * e_reduce,
                  m * (root + blocks) / shards() * e_reduce);
    }
  }

  // ---- tensor parallel -------------------------------------------------------------------------

  void tensor_parallel() {
    const std::int64_t m = microbatches();
    const std::int64_t stream = rows() * m_.hidden * e_activation();
    const std::int64_t expert_rows = std::max<std::int64_t>(m_.experts_per_token, 1);
    const std::int64_t per_direction = (1 + expert_rows) * stream;  // attention, MLP
    const std::int64_t recomputed = recomputed_layers();
    const std::int64_t again = s_.strategy.tensor.save_gathered_input ? 0 : 1;
    if (!sequence()) {
      term("all_reduce tp", "activations", m * layers() * 2 * per_direction);
      term("all_reduce tp", "activations recomputed", m * recomputed * per_direction);
      term("all_reduce tp", "embedding", first() ? m * stream : 0);
      term("all_reduce tp", "head", last() ? m * stream : 0);
    } else {
      term("all_gather tp", "activations", m * layers() * 2 * per_direction);
      term("reduce_scatter tp", "activations", m * layers() * 2 * per_direction);
      term("all_gather tp", "inputs gathered again", m * layers() * again * per_direction);
      term("all_gather tp", "activations recomputed", m * recomputed * per_direction);
      term("reduce_scatter tp", "activations recomputed", m * recomputed * per_direction);
      term("reduce_scatter tp", "embedding", first() ? m * stream : 0);
      term("all_gather tp", "embedding", first() ? m * stream : 0);
      term("all_gather tp", "head", last() ? m * (1 + again) * stream : 0);
      term("reduce_scatter tp", "head", last() ? m * stream : 0);
    }
    term("all_reduce tp", "loss", last() ? m * 3 * rows() * wide() : 0);
    replicated_gradients();
  }

  std::int64_t recomputed_layers() const {
    if (s_.training.recompute != Recompute::kFull) {
      return 0;
    }
    std::int64_t before = 0;
    for (int stage = 0; stage < stage_; ++stage) {
      before += Form(s_, stage).layers();
    }
    std::int64_t count = 0;
    for (std::int64_t layer = before; layer < before + layers(); ++layer) {
      count += layer % s_.training.recompute_every == 0 ? 1 : 0;
    }
    return count;
  }

  /// Gradients that are sums over tp, as often as gradients are reduced over dp (once without dp).
  void replicated_gradients() {
    const bool every = n() > 1 && stages() == 1 &&
                       (data().kind == DataKind::kZero2 || data().kind == DataKind::kZero3 ||
                        data().kind == DataKind::kFsdp || data().kind == DataKind::kHsdp);
    std::int64_t elements = 0;
    for (const std::vector<Weight>& segment : segments_) {
      for (const Weight& w : segment) {
        const bool replicated = w.cut == Cut::kNone && sequence();
        elements += w.per_head || replicated ? local(w) : 0;
      }
    }
    term("all_reduce tp", "norm", (every ? microbatches() : 1) * elements * e_gradient());
  }

  // ---- pipeline --------------------------------------------------------------------------------

  bool tied_copy() const {
    return !is_mlp() && m_.tied_embeddings && stages() > 1 && (first() || last());
  }

  void pipeline() {
    const std::int64_t tokens = sequence() ? rows() / t() : rows();
    const std::int64_t boundary = microbatches() * tokens * m_.hidden * e_activation();
    term("send pp", "activations", last() ? 0 : boundary);
    term("send pp", "gradients of activations", first() ? 0 : boundary);
    if (!tied_copy()) {
      return;
    }
    const std::int64_t vocabulary = up(m_.vocab, t()) / t() * m_.hidden;
    const std::string key = fmt::format("all_reduce pp{{0,{}}}", stages() - 1);
    const bool cut = n() > 1 && data().kind != DataKind::kDdp &&
                     !(data().kind == DataKind::kZero1 &&
                       data().flavour == ZeroFlavour::kZeroRedundancyOptimizer);
    if (!cut) {
      return term(key, "tied", vocabulary * e_gradient());
    }
    if (data().kind == DataKind::kZero1) {
      const std::int64_t unit = data().flavour == ZeroFlavour::kMegatron
                                    ? std::lcm<std::int64_t>(n(), 128)
                                : data().flavour == ZeroFlavour::kDeepSpeed ? 2 * n()
                                                                            : n();
      return padded_term(
          key, "tied", vocabulary / n() * e_gradient(), up(vocabulary, unit) / n() * e_gradient());
    }
    const std::int64_t table_rows = up(m_.vocab, t()) / t();
    const std::int64_t e_reduce =
        s_.training.reduce_dtype ? size_of(*s_.training.reduce_dtype) : wide();
    padded_term(key,
                "tied",
                table_rows * m_.hidden / shards() * e_reduce,
                up(table_rows, shards()) / shards() * m_.hidden * e_reduce);
  }

  // ---- numbers ---------------------------------------------------------------------------------

  /// Groups by axes, outermost first, as reports write them.
  std::string group(bool with_stages, bool with_replicas, bool with_data, bool with_tensor) const {
    std::string text;
    const auto add = [&](bool present, const char* name) {
      if (present) {
        text += (text.empty() ? "" : "+") + std::string(name);
      }
    };
    add(with_stages && stages() > 1, "pp");
    add(with_replicas && replicas() > 1, "dp_replicate");
    add(with_data && n() / replicas() > 1, "dp");
    add(with_tensor && t() > 1, "tp");
    return text;
  }

  /// The norm and the overflow flag over all ranks that hold parts of the parameters.
  void after_gradients() {
    const bool cuts = n() > 1 && data().kind != DataKind::kDdp && data().kind != DataKind::kDp &&
                      !(data().kind == DataKind::kZero1 &&
                        data().flavour == ZeroFlavour::kZeroRedundancyOptimizer);
    const bool over_replicas = cuts && data().kind == DataKind::kFsdp;
    const std::string axes = group(true, over_replicas, cuts, true);
    if (axes.empty()) {
      return;
    }
    term("all_reduce " + axes, "clip", s_.training.clip_norm > 0 ? 8 : 0);
    term("all_reduce " + axes, "overflow", s_.training.scales_loss() ? wide() : 0);
  }

  void control() {
    if (n() == 1 || !last()) {
      return;
    }
    const std::string axes = group(false, true, true, false);
    const bool one_process = data().kind == DataKind::kDp;
    term((one_process ? "reduce " : "all_reduce ") + axes + " control", "loss", wide());
    if (s_.training.loss_mean == LossMean::kGlobalTokens) {
      term("all_reduce " + axes + " control", "tokens", 8);
    }
  }

  const Scenario& s_;
  const ModelSpec& m_;
  int stage_;
  std::vector<std::vector<Weight>> segments_;  ///< of this stage: embedding, blocks, head
  Volumes volumes_;
};

}  // namespace

Volumes expected_volumes(const Scenario& scenario, int pipeline_coordinate) {
  return Form(scenario, pipeline_coordinate).volumes();
}

}  // namespace lockstep::test
