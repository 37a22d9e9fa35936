// SGD, momentum and AdamW with the formulas and the order of operations of PyTorch's single-tensor
// implementations (torch/optim/{sgd,adamw}.py): hyperparameters are doubles, rounded to T where a
// tensor operation takes them. Elementwise: a shard gets the bits that the whole parameter would.
#pragma once

#include <cstdint>

namespace lockstep::kernels::cpu {

struct SgdSettings {
  double learning_rate = 0;
  double weight_decay = 0;  ///< added to the gradient, as torch.optim.SGD does
  double momentum = 0;
  double dampening = 0;
  bool first_step = false;  ///< the momentum buffer starts as the gradient itself
};

struct AdamWSettings {
  double learning_rate = 0;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  std::int64_t step = 1;  ///< number of this step, from 1
};

template <typename T>
struct Optimizer {
  void (*sgd)(T* parameter, const T* gradient, const SgdSettings& settings, std::int64_t n);
  void (*momentum)(
      T* parameter, const T* gradient, T* buffer, const SgdSettings& settings, std::int64_t n);
  /// first and second: the moments exp_avg and exp_avg_sq.
  void (*adamw)(T* parameter,
                const T* gradient,
                T* first,
                T* second,
                const AdamWSettings& settings,
                std::int64_t n);
};

}  // namespace lockstep::kernels::cpu
