// Models of views as JSON: fields into an open object. Times are nanoseconds since the step's
// begin, bytes are bytes.
#pragma once

#include <optional>

#include "cli/json_writer.h"
#include "visualizer/models/buckets.h"
#include "visualizer/models/budget.h"
#include "visualizer/models/memory_stack.h"
#include "visualizer/models/shards.h"
#include "visualizer/models/timeline.h"

namespace lockstep::cli {

void write_timeline(JsonWriter& json, const view::Timeline& timeline);
void write_buckets(JsonWriter& json, const view::Buckets& buckets, std::optional<Nanoseconds> at);
void write_memory_stack(JsonWriter& json,
                        const view::MemoryStack& stack,
                        std::optional<Nanoseconds> at);
void write_shards(JsonWriter& json, const view::Shards& shards, std::optional<Nanoseconds> at);
void write_budget(JsonWriter& json, const view::Budget& budget);

}  // namespace lockstep::cli
