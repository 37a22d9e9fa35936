// Traces that are as large as people's: what the window must open and move in without stopping.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace lockstep::test {

/// A native trace of at least so many spans: 16 ranks train GPT-2 XL, no two at the same times.
/// Returns how many there are.
std::int64_t write_native_trace(const std::string& path, std::int64_t spans);

/// A trace as PyTorch's profiler writes it, of at least so many events: eight ranks with operators,
/// launches, arrows, kernels and collectives, in a file for each. `folder` must exist.
void write_profiler_traces(const std::filesystem::path& folder, std::int64_t events);

}  // namespace lockstep::test
