#include "visualizer/models/view_json.h"

#include <string>

#include "visualizer/models/path_summary.h"

namespace lockstep::view {
namespace {

std::int64_t number(std::size_t value) {
  return static_cast<std::int64_t>(value);
}

void write_by_category(JsonWriter& json, const char* key, const CategoryBytes& bytes) {
  json.begin_object(key);
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    json.field(std::string(name_of(static_cast<Category>(i))).c_str(), bytes[i]);
  }
  json.end_object();
}

void write_launch(JsonWriter& json, const Buckets& buckets, const BucketLaunch& it) {
  const Nanoseconds begin = buckets.whole().from;
  json.begin_object();
  json.field("bucket", it.bucket);
  json.field("microbatch", it.microbatch);
  json.field("first_filled_ns", it.first_filled - begin);
  json.field("full_ns", it.full - begin);
  json.field("issued_ns", it.issued - begin);
  json.field("arrived_ns", it.arrived - begin);
  json.field("started_ns", it.started - begin);
  json.field("ended_ns", it.ended - begin);
  json.field("exposed_ns", it.exposed);
  json.field("waiting_ns", it.waiting);
  json.field("last_rank", it.last_rank);
  json.begin_array("gradients");
  for (const BucketDrop& drop : it.drops) {
    json.begin_object();
    json.field("parameter", drop.parameter);
    json.field("ready_ns", drop.ready - begin);
    json.field("filled_ns", drop.filled - begin);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_summary(JsonWriter& json, const Buckets& buckets) {
  const BucketSummary& it = buckets.summary();
  const Nanoseconds begin = buckets.whole().from;
  json.field("collective", it.kind);
  json.field("group", it.group);
  json.field("group_ranks", it.ranks);
  json.field("reductions", it.reductions);
  json.field("tensor_bytes", it.tensor_bytes);
  json.field("sent_bytes", it.sent_bytes);
  json.field("transfer_ns", it.transfer);
  json.field("hidden_ns", it.hidden);
  json.field("exposed_ns", it.exposed);
  json.field("waiting_ns", it.waiting);
  json.field("overlap", it.overlap());
  json.field("last_gradient_ns", it.tail.from - begin);
  json.field("tail_ns", it.tail.length());
}

void write_bucket_state(JsonWriter& json, const Buckets& buckets, Nanoseconds at) {
  json.begin_array("state");
  for (const BucketState& it : buckets.state(at)) {
    json.begin_object();
    json.field("phase", name_of(it.phase));
    json.field("filled_bytes", it.filled_bytes);
    json.field("filled", it.filled);
    json.field("launch", it.launch);
    json.end_object();
  }
  json.end_array();
}

void write_item(JsonWriter& json, const MemoryStack& stack, const MemoryItem& it) {
  const Nanoseconds begin = stack.whole().from;
  json.begin_object();
  json.field("name", stack.name(it));
  json.field("category", name_of(it.category));
  json.field("bytes", it.bytes);
  json.field("since_ns", it.since - begin);
  json.field("until_ns", it.until - begin);
  json.field("from_before", it.allocated == kNoSpan);
  json.field("stays", it.freed == kNoSpan);
  json.end_object();
}

void write_traffic(JsonWriter& json, const char* key, const ShardTraffic& it) {
  json.begin_object(key);
  json.field("messages", it.messages);
  json.field("tensor_bytes", it.tensor_bytes);
  json.field("sent_bytes", it.sent_bytes);
  json.field("exposed_ns", it.exposed);
  json.field("waiting_ns", it.waiting);
  json.end_object();
}

void write_intervals(JsonWriter& json,
                     const char* key,
                     const std::vector<ShardInterval>& row,
                     Nanoseconds begin) {
  json.begin_array(key);
  for (const ShardInterval& it : row) {
    json.begin_object();
    json.field("begin_ns", it.begin - begin);
    json.field("end_ns", it.end - begin);
    json.field("stage", name_of(it.stage));
    json.field("phase", name_of(it.phase));
    json.field("microbatch", it.microbatch);
    json.end_object();
  }
  json.end_array();
}

void write_bar(JsonWriter& json, const BudgetBar& bar) {
  json.begin_object();
  json.field("rank", bar.rank);
  json.field("count", bar.count);
  json.field("peak_bytes", bar.peak_bytes);
  json.field("upper_bound_bytes", bar.upper_bound_bytes);
  json.field("peak_operation", bar.peak_text);
  json.begin_array("segments");
  for (const BudgetSegment& it : bar.segments) {
    json.begin_object();
    json.field("name", it.name);
    json.field("margin", it.margin);
    json.field("bytes", it.bytes());
    json.begin_array("terms");
    for (const MemoryTerm& term : it.terms) {
      json.begin_object();
      json.field("name", term.name);
      json.field("bytes", term.bytes);
      json.field("formula", term.formula);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_path(JsonWriter& json, const TraceIndex& index) {
  const PathSummary summary(index, critical_path(index));
  const Nanoseconds begin = index.step().begin;
  json.begin_object("critical_path");
  json.begin_array("shares");
  for (const PathShare& it : summary.shares()) {
    json.begin_object();
    json.field("cause", name_of(it.cause));
    json.field("group", it.group);
    json.field("time_ns", it.time);
    json.field("pieces", it.pieces);
    json.end_object();
  }
  json.end_array();
  json.begin_array("pieces");
  for (const PathSegment& it : summary.path()) {
    json.begin_object();
    json.field("rank", index.track(it.track).ranks.front());
    json.field("operation", it.operation == kNoSpan ? -1 : static_cast<std::int64_t>(it.operation));
    json.field("begin_ns", it.begin - begin);
    json.field("end_ns", it.end - begin);
    json.field("cause", name_of(it.cause));
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

}  // namespace

void write_timeline(JsonWriter& json, const Timeline& timeline) {
  const Nanoseconds begin = timeline.whole().from;
  json.begin_array("rows");
  for (const TimelineRow& row : timeline.rows()) {
    json.begin_object();
    json.field("rank", row.rank);
    json.field("stream", name_of(row.stream));
    json.begin_array("boxes");
    for (const TimelineBox& box : timeline.boxes(row, timeline.whole(), 0)) {
      json.begin_object();
      json.field("begin_ns", box.begin - begin);
      json.field("end_ns", box.end - begin);
      json.field("paint", name_of(box.paint));
      json.field("operation", static_cast<std::int64_t>(box.operation));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  write_path(json, timeline.index());
}

void write_buckets(JsonWriter& json, const Buckets& buckets, std::optional<Nanoseconds> at) {
  json.field("rank", buckets.rank());
  json.field("empty", buckets.why_empty());
  if (!buckets.why_empty().empty()) {
    return;
  }
  write_summary(json, buckets);
  json.begin_array("parameters");
  for (const BucketParameter& it : buckets.parameters()) {
    json.begin_object();
    json.field("name", it.name);
    json.field("bytes", it.bytes);
    json.field("bucket", it.bucket);
    json.end_object();
  }
  json.end_array();
  json.begin_array("buckets");
  for (const Bucket& it : buckets.buckets()) {
    json.begin_object();
    json.field("bytes", it.bytes);
    json.field("member_bytes", it.member_bytes);
    if (it.cap_bytes) {
      json.field("cap_bytes", *it.cap_bytes);
    }
    json.field("members", std::vector<int>(it.members.begin(), it.members.end()));
    json.end_object();
  }
  json.end_array();
  json.begin_array("launches");
  for (const BucketLaunch& it : buckets.launches()) {
    write_launch(json, buckets, it);
  }
  json.end_array();
  if (at) {
    write_bucket_state(json, buckets, buckets.whole().from + *at);
  }
}

void write_memory_stack(JsonWriter& json, const MemoryStack& stack, std::optional<Nanoseconds> at) {
  const Nanoseconds begin = stack.whole().from;
  const std::size_t peak = stack.peak();
  const std::size_t shown = at ? stack.sample_at(begin + *at) : peak;
  json.field("rank", stack.rank());
  json.field("peak_bytes", stack.peak_bytes());
  json.field("peak_ns", stack.samples()[peak].time - begin);
  json.field("peak_operation", stack.peak_text());
  write_by_category(json, "peak_by_category", stack.samples()[peak].bytes);
  json.begin_array("samples");
  for (const MemorySample& it : stack.samples()) {
    json.begin_object();
    json.field("time_ns", it.time - begin);
    write_by_category(json, "bytes", it.bytes);
    json.end_object();
  }
  json.end_array();
  json.field("shown_sample", number(shown));
  json.begin_array("alive");
  for (const MemoryItem& it : stack.alive(shown)) {
    write_item(json, stack, it);
  }
  json.end_array();
}

void write_shards(JsonWriter& json, const Shards& shards, std::optional<Nanoseconds> at) {
  const Nanoseconds begin = shards.whole().from;
  json.field("rank", shards.rank());
  json.field("empty", shards.why_empty());
  if (!shards.why_empty().empty()) {
    return;
  }
  write_traffic(json, "gathers", shards.gathers());
  write_traffic(json, "reductions", shards.reductions());
  json.begin_array("units");
  for (const ShardUnit& it : shards.units()) {
    json.begin_object();
    json.field("name", it.name);
    json.field("shards", it.shards);
    json.field("gathered_bytes", it.gathered_bytes);
    json.field("shard_bytes", it.shard_bytes);
    write_intervals(json, "parameters", it.parameters, begin);
    write_intervals(json, "gradients", it.gradients, begin);
    json.end_object();
  }
  json.end_array();
  json.begin_array("peak_holders");
  for (const PeakHolder& it : shards.peak_holders()) {
    json.begin_object();
    json.field("unit", it.unit);
    json.field("parameter_bytes", it.parameter_bytes);
    json.field("gradient_bytes", it.gradient_bytes);
    json.field("communication_bytes", it.communication_bytes);
    json.end_object();
  }
  json.end_array();
  if (at) {
    json.begin_array("state");
    for (const ShardState& it : shards.state(begin + *at)) {
      json.begin_object();
      json.field("parameters", name_of(it.parameters));
      json.field("gradients", it.gradient_interval == nullptr ? "none" : name_of(it.gradients));
      json.end_object();
    }
    json.end_array();
  }
}

void write_budget(JsonWriter& json, const Budget& budget) {
  json.begin_array("strategies");
  for (std::size_t i = 0; i < budget.rows().size(); ++i) {
    const BudgetRow& row = budget.rows()[i];
    json.begin_object();
    json.field("strategy", row.words);
    json.field("refused", row.refused);
    json.field("note", row.note);
    if (!row.refused) {
      json.field("fits", row.fits);
      json.field("worst_rank", row.worst_rank);
      json.field("peak_bytes", row.peak_bytes);
      json.field("device_bytes", row.device_bytes);
      json.field("step_time_s", row.step_s);
      json.field("tokens_per_s", row.tokens_per_s);
      json.field("bubble_fraction", row.bubble);
      json.field("sent_bytes_per_rank", row.sent_bytes);
      json.begin_array("bars");
      for (const BudgetBar& bar : budget.bars(i)) {
        write_bar(json, bar);
      }
      json.end_array();
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace lockstep::view
