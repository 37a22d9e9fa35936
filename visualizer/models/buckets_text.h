// BucketsText: gradient buckets of one rank drawn in a terminal, the text twin of the bucket view.
//
//                            0 ms         5            10
//    0   9.01 MiB  51 tensors        ..::::##~~===
//    1  27.00 MiB   4 tensors             ..:::::===
//
// A row for each bucket: it fills, is full, waits for other ranks, is in transfer.
#pragma once

#include <optional>
#include <string>

#include "visualizer/models/buckets.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {

/// `at`: a moment whose state is listed too.
std::string buckets_text(const Buckets& buckets,
                         std::optional<Nanoseconds> at = {},
                         const TextOptions& options = {});

}  // namespace lockstep::view
