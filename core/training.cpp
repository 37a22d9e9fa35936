#include "core/training.h"

#include "core/validate_fields.h"

namespace lockstep {

DType TrainingSpec::parameter_dtype() const {
  switch (precision) {
    case Precision::kFp64:
      return DType::kFp64;
    case Precision::kBf16:
      return DType::kBf16;
    case Precision::kFp16:
      return DType::kFp16;
    case Precision::kFp32:
    case Precision::kTf32:
    case Precision::kAutocast:
      break;
  }
  return DType::kFp32;
}

DType TrainingSpec::activation_dtype() const {
  return precision == Precision::kAutocast ? DType::kBf16 : parameter_dtype();
}

void validate(const TrainingSpec& training, Problems& problems) {
  validate_fields("training", training, problems);
  problems.require(!training.gradient_dtype || is_floating(*training.gradient_dtype),
                   "training.gradient_dtype",
                   "must be a floating-point type: fp64, fp32, bf16 or fp16");
  problems.require(!training.reduce_dtype || is_floating(*training.reduce_dtype),
                   "training.reduce_dtype",
                   "must be a floating-point type: fp64, fp32, bf16 or fp16");
  problems.require(training.recompute_every == 1 || training.recompute == Recompute::kFull,
                   "training.recompute_every",
                   "is for training.recompute \"full\" only");
  problems.require(training.loss_scaling != true || training.precision == Precision::kFp16 ||
                       training.precision == Precision::kBf16 ||
                       training.precision == Precision::kAutocast,
                   "training.loss_scaling",
                   "is for 16-bit arithmetic (fp16, bf16, autocast): gradients of wider types do "
                   "not vanish");
}

}  // namespace lockstep
