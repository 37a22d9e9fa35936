// RowScenario: what a published run means as a scenario. A table prints shapes and degrees; what it
// leaves open (norms, biases, which optimizer flavour) follows from rules that look at no name:
//
//   - an MLP is gated, and the head tied, where the printed number of parameters says so;
//   - gated models have RMSNorm, rotary positions and no biases, others the GPT-2 form;
//   - zero1 is Megatron-LM's distributed optimizer, zero2 of a plain data-parallel run is FSDP that
//     keeps parameters after forward (SHARD_GRAD_OP), hsdp shards inside a node;
//   - with tensor or pipeline parallelism gradients are reduced after backward (Megatron-LM's
//     default), without it they overlap with it (PyTorch's);
//   - who does not fuse attention runs software of before PyTorch 1.13, whose context holds the
//     kernels of all libraries (PyTorch pull request 86509).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/validation_io.h"
#include "core/scenario.h"

namespace lockstep::sim {

/// What is known of the machines.
struct Machines {
  std::vector<HardwareName> hardware;
  std::vector<SiteNetwork> sites;
  std::vector<AttentionKernel> kernels;
  std::vector<EagerContext> contexts;
};

/// The resolved, legal scenario of a row; NotSupportedError with the reason where there is none.
Scenario scenario_of(const TrainingRow& row, const Machines& machines);

/// Part of the devices' peak that the printed step time claims, counting only the products of the
/// layers' parameters, six FLOPs each and token; 0 without a step time. Above one, what was printed
/// cannot have been run as printed.
double claimed_fraction(const TrainingRow& row, const Scenario& scenario);

/// Why the selection rule leaves the row out; empty when it takes it. The rule: every core field
/// printed (shape, batch, degrees, sharding, precision; for step times recompute and virtual stages
/// too), cp = ep = 1, precision fp32, tf32, bf16 or fp16, all parameters trained on the device.
std::string left_out(const TrainingRow& row, ValidationTable table);

}  // namespace lockstep::sim
