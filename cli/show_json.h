// Models of views as JSON: fields into an open object. Times are nanoseconds since the step's
// begin, bytes are bytes.
#pragma once

#include <optional>

#include "cli/json_writer.h"
#include "visualizer/models/buckets.h"
#include "visualizer/models/budget.h"
#include "visualizer/models/collective_steps.h"
#include "visualizer/models/comparison.h"
#include "visualizer/models/memory_stack.h"
#include "visualizer/models/pipeline_grid.h"
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
/// What ran, and the schedule under unit costs.
void write_pipeline(JsonWriter& json,
                    const view::PipelineGrid& real,
                    const view::PipelineGrid& ideal,
                    const std::optional<view::BubbleFormula>& formula);
void write_comparison(JsonWriter& json, const view::Comparison& comparison);
void write_collective(JsonWriter& json, const view::CollectiveSteps& steps);

}  // namespace lockstep::cli
