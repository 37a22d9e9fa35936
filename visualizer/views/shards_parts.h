// ShardsParts: what the files of ShardsView share: how a unit's state is called and painted.
#pragma once

#include <array>

#include "visualizer/ui/state.h"
#include "visualizer/views/shards_view.h"

namespace lockstep::views {

inline const char* stage_text(view::ShardStage stage) {
  static constexpr std::array<ui::S, 7> kTexts{ui::S::kStageSharded,
                                               ui::S::kStageGathering,
                                               ui::S::kStageGathered,
                                               ui::S::kStageUsed,
                                               ui::S::kStageFull,
                                               ui::S::kStageReducing,
                                               ui::S::kStageReduced};
  return ui::tr(kTexts[static_cast<std::size_t>(stage)]);
}

inline const ui::Look& memory_look(Category category) {
  return ui::theme().memory[static_cast<std::size_t>(category)];
}

/// Of the whole strip; the own shard has own_look().
inline ui::Look strip_look(view::ShardStage stage) {
  switch (stage) {
    case view::ShardStage::kGathering:
    case view::ShardStage::kReducing:
      return ui::theme().look(view::Paint::kTransfer);
    case view::ShardStage::kGathered:
      return memory_look(Category::kGatheredParameter);
    case view::ShardStage::kUsed: {
      const ui::Look& whole = memory_look(Category::kGatheredParameter);
      return {whole.fill, whole.text, ui::Hatch::kNone, true};
    }
    case view::ShardStage::kFull:
      return memory_look(Category::kGradient);
    default:
      return {ui::theme().raised, ui::theme().text, ui::Hatch::kNone, false};
  }
}

inline ui::Look reduced_look() {
  const ui::Look& whole = memory_look(Category::kGradient);
  return {whole.fill, whole.text, ui::Hatch::kNone, false};
}

}  // namespace lockstep::views
