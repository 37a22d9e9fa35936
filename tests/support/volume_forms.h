// What a step sends, in closed form from the sizes of the model: every term by name. Nothing here
// knows the planner: parameters and activations are counted from ModelSpec, messages from the
// papers (Megatron-LM arXiv:1909.08053 section 3 and arXiv:2205.05198 section 4.2.2, ZeRO
// arXiv:1910.02054 section 7, PyTorch FSDP arXiv:2304.11277 section 3).
//
// Bytes are those of the whole buffer: of an all-reduced, broadcast or sent message, of the result
// of an all-gather, of the input of a reduce-scatter. On a ring of N each rank sends 2(N-1)/N of it
// for an all-reduce, (N-1)/N for an all-gather or reduce-scatter.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/scenario.h"

namespace lockstep::test {

struct VolumeTerm {
  std::string name;  ///< gradients, parameters, activations, embedding, loss, norm, tied, clip, ...
  std::int64_t bytes = 0;
};

/// By "kind group": "all_reduce dp", "reduce_scatter dp", "send pp"; control messages end in
/// " control".
using Volumes = std::map<std::string, std::vector<VolumeTerm>>;

std::int64_t total(const std::vector<VolumeTerm>& terms);
std::string text_of(const Volumes& volumes);

/// One steady step of a rank at a pipeline coordinate. Transformers with the parameters of GPT-2
/// (fused qkv, biases) or of Llama (none), dense or with experts, and MLPs; one virtual stage a
/// rank.
Volumes expected_volumes(const Scenario& scenario, int pipeline_coordinate = 0);

}  // namespace lockstep::test
