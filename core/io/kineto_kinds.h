// What the words of trace files mean: which category and name make a span a kernel, a copy or
// communication; which of the many spellings of a collective is which; how large a dtype is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/imported_trace.h"

namespace lockstep {

/// Categories of PyTorch's profiler (libkineto's ActivityType names) and of our Chrome export.
ImportedKind kind_of_span(std::string_view category, std::string_view name);

/// "all_reduce" of "nccl:all_reduce", "allreduce", "_allgather_base",
/// "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"; empty for what is no collective.
std::string_view collective_kind(std::string_view name);

/// By c10's names: "Float", "BFloat16".
std::optional<std::int64_t> dtype_bytes(std::string_view dtype);

/// The N of "rank-N", "rank_N", "rank N" or "rankN" in any case, the first of several.
std::optional<int> rank_in_name(std::string_view name);

}  // namespace lockstep
