#include "visualizer/app/glossary.h"

namespace lockstep::app {

const std::vector<std::pair<ui::S, ui::S>>& glossary() {
  using ui::S;
  static const std::vector<std::pair<S, S>> rows{
      {S::kTermRank, S::kTermRankText},
      {S::kTermStep, S::kTermStepText},
      {S::kTermMicro, S::kTermMicroText},
      {S::kTermDp, S::kTermDpText},
      {S::kTermBucket, S::kTermBucketText},
      {S::kTermFsdp, S::kTermFsdpText},
      {S::kTermTp, S::kTermTpText},
      {S::kTermPp, S::kTermPpText},
      {S::kTermBubble, S::kTermBubbleText},
      {S::kTermExposed, S::kTermExposedText},
      {S::kTermMfu, S::kTermMfuText},
      {S::kTermCollective, S::kTermCollectiveText},
      {S::kTermStream, S::kTermStreamText},
      {S::kTermRecompute, S::kTermRecomputeText},
  };
  return rows;
}

}  // namespace lockstep::app
