#include "core/planner/step_assembly.h"

#include "core/check.h"

namespace lockstep {
namespace {

/// Segments of a chunk that follow each other and do the same.
struct Stretch {
  PieceSlot slot = PieceSlot::kEmbedding;
  std::int32_t first = 0;  ///< segment of the chunk
  std::int32_t count = 1;
  bool dropped = false;
};

class StepAssembly {
 public:
  StepAssembly(const StepPlan& plan, StepSums& sums) : plan_(plan), sums_(sums) {
    stretches_.reserve(16);
    fragments_.reserve(32);
  }

  void run() {
    sums_.clear(plan_.walk.totals.size());
    sums_.at_start = plan_.stage.at_start;
    sums_.begin = plan_.stage.begin.fragment;
    sums_.end = plan_.stage.end.fragment;
    std::size_t position = 0;
    for (std::size_t chunk = 0; chunk < plan_.form.chunks.size(); ++chunk) {
      chunk_ = chunk;
      position_ = position;
      find_stretches();
      for (const PieceOrder order : orders_of(plan_.many)) {
        add_pass(PassKind::kForward, order);
        add_pass(PassKind::kBackward, order);
        if (plan_.splits) {
          add_pass(PassKind::kWeight, order);
        }
      }
      for (std::size_t message = 0; message < kMessageCount; ++message) {
        sums_.begin_pass(message_symbol(chunk, message));
        add_one(plan_.kept.messages[message]);
      }
      position += chunk_form().segments();
    }
  }

 private:
  const ChunkForm& chunk_form() const { return plan_.form.chunks[chunk_]; }
  bool is_dropped(std::int32_t block) const {
    return (plan_.kind.first_layer[chunk_] + block) % plan_.every == 0;
  }
  bool interject_alike(std::int32_t segment, std::int32_t other) const {
    const std::vector<std::size_t>& alike = plan_.stage.first_alike;
    return alike.empty() || alike[position_ + static_cast<std::size_t>(segment)] ==
                                alike[position_ + static_cast<std::size_t>(other)];
  }

  void find_stretches() {
    stretches_.clear();
    const std::int32_t blocks = chunk_form().blocks;
    const std::int32_t before = chunk_form().embedding ? 1 : 0;
    if (chunk_form().embedding) {
      stretches_.push_back({PieceSlot::kEmbedding, 0});
    }
    if (blocks > 0) {
      stretches_.push_back({PieceSlot::kFirstBlock, before, 1, is_dropped(0)});
    }
    const bool alike = plan_.every == 1 && plan_.stage.interjections.empty();
    for (std::int32_t block = 1; block + 1 < blocks; ++block) {
      const Stretch next{PieceSlot::kMiddleBlock, before + block, 1, is_dropped(block)};
      if (alike) {
        stretches_.push_back(next);
        stretches_.back().count = blocks - 2;
        break;
      }
      Stretch& last = stretches_.back();
      if (last.slot == next.slot && last.dropped == next.dropped &&
          interject_alike(last.first, next.first)) {
        ++last.count;
      } else {
        stretches_.push_back(next);
      }
    }
    if (blocks > 1) {
      const std::int32_t block = blocks - 1;
      stretches_.push_back({PieceSlot::kLastBlock, before + block, 1, is_dropped(block)});
    }
    if (chunk_form().head) {
      stretches_.push_back({PieceSlot::kHead, before + blocks});
    }
  }

  void add_pass(PassKind pass, PieceOrder number) {
    const PieceOrder order = recorded_order(number, plan_.reduces_every);
    sums_.begin_pass(pass_symbol(chunk_, pass, number));
    if (pass == PassKind::kForward) {
      add_one(plan_.kept.microbatch[batch_index(chunk_form(), chunk_)][index(order)]);
      for (const Stretch& stretch : stretches_) {
        add_stretch(stretch, pass, order);
      }
      return;
    }
    for (std::size_t i = stretches_.size(); i-- > 0;) {
      add_stretch(stretches_[i], pass, order);
    }
    if (chunk_ == 0 && pass == (plan_.splits ? PassKind::kWeight : PassKind::kBackward)) {
      add_one(plan_.stage.microbatch_end[index(order)]);
    }
  }

  void add_one(const Piece& piece) { sums_.add({}, {&piece.fragment, 1}); }

  void add_stretch(const Stretch& stretch, PassKind pass, PieceOrder order) {
    const auto slot = index(stretch.slot);
    const auto at = index(order);
    const StagePieces::Chunk& chunk = plan_.stage.chunks[chunk_];
    const auto hook = [&](std::size_t after) {
      return chunk.any[index(pass)][after] ? chunk.hooks[index(pass)][after][slot][at].fragment
                                           : nullptr;
    };
    const SegmentPieces& pieces = stretch.dropped ? plan_.dropped : plan_.kept;
    const SegmentForm form = form_of(stretch.slot);
    const PieceParts& parts =
        pieces.passes[index(pass)][index(form)][pieces.kept_order(pass, form, order)];
    fragments_.clear();
    fragments_.push_back(hook(0));
    add_parts(stretch, pass, at, parts.fragments);
    fragments_.push_back(hook(1));
    const std::int32_t block = stretch.first - (chunk_form().embedding ? 1 : 0);
    PieceGroup group;
    group.times = stretch.count;
    if (form == SegmentForm::kBlock) {
      group.base = PieceBase::kBlock;
      group.block = pass == PassKind::kForward ? block : block + stretch.count - 1;
      group.step = pass == PassKind::kForward ? 1 : -1;
    } else {
      group.base = form == SegmentForm::kHead ? PieceBase::kHead : PieceBase::kEmbedding;
    }
    sums_.add(group, fragments_);
  }

  /// The parts of a segment's pass, with what was interjected between them.
  void add_parts(const Stretch& stretch,
                 PassKind pass,
                 std::size_t order,
                 const std::vector<const Fragment*>& parts) {
    if (parts.size() < 2) {
      fragments_.push_back(parts.empty() ? nullptr : parts.front());
      return;
    }
    LOCKSTEP_CHECK(pass == PassKind::kBackward, "only backwards are interjected");
    const std::size_t position = position_ + static_cast<std::size_t>(stretch.first);
    const std::vector<const Fragment*>& between = plan_.stage.interjections[position][order];
    LOCKSTEP_CHECK(between.size() + 1 == parts.size(), "a piece and its interjections differ");
    for (std::size_t i = 0; i < parts.size(); ++i) {
      fragments_.push_back(parts[i]);
      if (i < between.size()) {
        fragments_.push_back(between[i]);
      }
    }
  }

  const StepPlan& plan_;
  StepSums& sums_;
  std::size_t chunk_ = 0;
  std::size_t position_ = 0;  ///< of the chunk's first segment
  std::vector<Stretch> stretches_;
  std::vector<const Fragment*> fragments_;
};

}  // namespace

namespace {

/// Pieces of all orders of a step are recorded together: the first one tells.
std::size_t first_order(const StepPlan& plan) {
  return index(recorded_order(orders_of(plan.many).front(), plan.reduces_every));
}

}  // namespace

bool has_form(const StepPlan& plan, const SegmentPieces& segment, SegmentForm form) {
  return segment.passes[index(PassKind::kBackward)][index(form)][first_order(plan)].known;
}

bool has_pieces(const StepPlan& plan, const SegmentPieces& segment) {
  bool all = plan.stage.begin.known;
  for (std::size_t chunk = 0; chunk < plan.form.chunks.size(); ++chunk) {
    const ChunkForm& form = plan.form.chunks[chunk];
    all = all && (!form.embedding || has_form(plan, segment, SegmentForm::kEmbedding)) &&
          (form.blocks == 0 || has_form(plan, segment, SegmentForm::kBlock)) &&
          (!form.head || has_form(plan, segment, SegmentForm::kHead)) &&
          segment.microbatch[batch_index(form, chunk)][first_order(plan)].known;
    for (std::size_t message = 0; message < kMessageCount; ++message) {
      all = all && (plan.walk.totals[message_symbol(chunk, message)] == 0 ||
                    segment.messages[message].known);
    }
  }
  return all;
}

void put_together(const StepPlan& plan, StepSums& sums) {
  StepAssembly(plan, sums).run();
}

}  // namespace lockstep
