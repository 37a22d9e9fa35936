// JSON of the views in which ranks stand side by side: pipeline, two steps, collective.
#include <string>

#include "visualizer/models/view_json.h"

namespace lockstep::view {
namespace {

void write_cell(JsonWriter& json, const PipelineCell& cell, std::int64_t begin) {
  json.begin_object();
  json.field("kind", std::string(1, letter_of(cell.kind)));
  json.field("stage", cell.stage);
  json.field("chunk", cell.chunk);
  json.field("microbatch", cell.microbatch);
  json.field("begin", cell.begin - begin);
  json.field("end", cell.end - begin);
  json.field("busy", cell.busy);
  json.end_object();
}

void write_row(JsonWriter& json, const PipelineGrid& grid, const PipelineRow& row) {
  json.begin_object();
  json.field("coordinate", row.coordinate);
  json.field("rank", row.rank);
  json.field("bubble", grid.bubble(row));
  json.field("working", row.working);
  json.field("stalled", row.stalled);
  json.field("peak_live", row.peak_live);
  json.field("peak_activation_bytes", row.peak_activation_bytes);
  json.begin_array("cells");
  for (const PipelineCell& cell : row.cells) {
    write_cell(json, cell, grid.begin);
  }
  json.end_array();
  json.begin_array("live");
  for (const LiveChange& it : row.live) {
    json.begin_object();
    json.field("time", it.time - grid.begin);
    json.field("count", it.count);
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_grid(JsonWriter& json, const char* key, const PipelineGrid& grid) {
  json.begin_object(key);
  json.field("ticks_per_unit", grid.ticks_per_unit);  // 0: times are nanoseconds
  json.field("length", grid.length());
  json.field("bubble", grid.bubble());
  json.field("chunks", grid.chunks);
  json.field("microbatches", grid.microbatches);
  json.begin_array("rows");
  for (const PipelineRow& row : grid.rows) {
    write_row(json, grid, row);
  }
  json.end_array();
  json.end_object();
}

void write_sums(JsonWriter& json, const char* key, const std::vector<SumDifference>& sums) {
  json.begin_array(key);
  for (const SumDifference& it : sums) {
    json.begin_object();
    json.field("name", it.name);
    json.field("a_ns", it.a);
    json.field("b_ns", it.b);
    json.end_object();
  }
  json.end_array();
}

void write_lone(JsonWriter& json, const LoneOperation& it, const std::string& name) {
  json.begin_object();
  json.field("name", name);
  json.field("rank", it.rank);
  json.field("ranks", it.ranks);
  json.field("time_ns", it.time);
  json.end_object();
}

std::vector<int> ranks_in(RankSet set, int ranks) {
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) {
    if ((set & set_of(rank)) != 0) {
      members.push_back(rank);
    }
  }
  return members;
}

void write_move(JsonWriter& json, const StepMove& move, int ranks) {
  json.begin_object();
  json.field("src", move.src);
  json.field("dst", move.dst);
  json.field("chunk", move.chunk);
  json.field("bytes", move.bytes);
  json.field("reduces", move.reduces);
  json.field("holds_after", ranks_in(move.after, ranks));
  json.end_object();
}

}  // namespace

void write_pipeline(JsonWriter& json,
                    const PipelineGrid& real,
                    const PipelineGrid& ideal,
                    const std::optional<BubbleFormula>& formula) {
  if (formula) {
    json.begin_object("formula");
    json.field("schedule", formula->schedule);
    json.field("symbols", formula->symbols);
    json.field("values", formula->values);
    json.field("fraction", formula->fraction);
    json.end_object();
  }
  write_grid(json, "step", real);
  write_grid(json, "unit_time", ideal);
}

void write_comparison(JsonWriter& json, const Comparison& comparison) {
  json.field("a_ns", comparison.a_length());
  json.field("b_ns", comparison.b_length());
  json.field("same_plan", comparison.same_plan());
  json.field("ranks_without_partner", comparison.ranks_without_partner());
  write_sums(json, "split", comparison.split());
  write_sums(json, "families", comparison.families());
  json.begin_array("differences");
  for (const OperationDifference& it : comparison.differences()) {
    json.begin_object();
    json.field("name", comparison.name_of(it));
    json.field("rank", it.rank);
    json.field("ranks", it.ranks);
    json.field("a_ns", it.a);
    json.field("b_ns", it.b);
    json.end_object();
  }
  json.end_array();
  json.begin_array("only_a");
  for (const LoneOperation& it : comparison.only_a()) {
    write_lone(json, it, comparison.name_of_a(it));
  }
  json.end_array();
  json.begin_array("only_b");
  for (const LoneOperation& it : comparison.only_b()) {
    write_lone(json, it, comparison.name_of_b(it));
  }
  json.end_array();
}

void write_collective(JsonWriter& json, const CollectiveSteps& steps) {
  const CollectiveRecord& head = steps.head();
  json.field("collective", name_of(head.collective));
  json.field("algorithm", head.algorithm);
  json.field("ranks", steps.ranks());
  json.field("message_bytes", head.message_bytes);
  json.field("time_ns", head.time);
  json.field("phases", std::vector<int>(steps.phases().begin(), steps.phases().end()));
  json.begin_array("chunks");
  for (const StepChunk& it : steps.chunks()) {
    json.begin_object();
    json.field("begin", it.begin);
    json.field("bytes", it.bytes);
    json.end_object();
  }
  json.end_array();
  json.begin_array("steps");
  for (const CollectiveStep& step : steps.steps()) {
    json.begin_object();
    json.field("reduces", step.reduces);
    json.begin_array("moves");
    for (const StepMove& move : step.moves) {
      write_move(json, move, steps.ranks());
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.begin_array("totals");
  for (int rank = 0; rank < steps.ranks(); ++rank) {
    json.begin_object();
    json.field("rank", rank);
    json.field("sent_bytes", steps.sent_bytes(rank));
    json.field("received_bytes", steps.received_bytes(rank));
    json.end_object();
  }
  json.end_array();
  json.field("problems", steps.problems());
}

}  // namespace lockstep::view
