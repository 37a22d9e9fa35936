// Models of views as JSON: fields into an open object. Times are nanoseconds since the step's
// begin, bytes are bytes.
#pragma once

#include <optional>

#include "core/io/json_writer.h"
#include "visualizer/models/buckets.h"
#include "visualizer/models/budget.h"
#include "visualizer/models/collective_steps.h"
#include "visualizer/models/comparison.h"
#include "visualizer/models/memory_stack.h"
#include "visualizer/models/pipeline_grid.h"
#include "visualizer/models/shards.h"
#include "visualizer/models/timeline.h"

namespace lockstep::view {

void write_timeline(JsonWriter& json, const Timeline& timeline);
void write_buckets(JsonWriter& json, const Buckets& buckets, std::optional<Nanoseconds> at);
void write_memory_stack(JsonWriter& json, const MemoryStack& stack, std::optional<Nanoseconds> at);
void write_shards(JsonWriter& json, const Shards& shards, std::optional<Nanoseconds> at);
void write_budget(JsonWriter& json, const Budget& budget);
/// What ran, and the schedule under unit costs.
void write_pipeline(JsonWriter& json,
                    const PipelineGrid& real,
                    const PipelineGrid& ideal,
                    const std::optional<BubbleFormula>& formula);
void write_comparison(JsonWriter& json, const Comparison& comparison);
void write_collective(JsonWriter& json, const CollectiveSteps& steps);

}  // namespace lockstep::view
