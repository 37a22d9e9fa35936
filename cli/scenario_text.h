// Scenario in words: the one line that heads every report.
#pragma once

#include <cstdint>
#include <string>

#include "core/scenario.h"

namespace lockstep::cli {

/// "llama-3.1-8b on 8 x H100-SXM5-80GB: fsdp, dp 8, bf16, adamw, seq 8192, micro-batch 1, ...".
std::string scenario_line(const Scenario& scenario);

/// What strategies are compared on: "llama-3.1-8b on 8 x H100-SXM5-80GB, 32 samples of 8192 tokens
/// a step".
std::string workload_line(const Scenario& scenario, std::int64_t devices);

}  // namespace lockstep::cli
