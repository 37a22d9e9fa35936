#include "cli/plan_listing.h"

#include <fmt/format.h>

#include "core/io/field_writer.h"
#include "core/model_graph.h"
#include "core/plan_text.h"
#include "core/report_text.h"

namespace lockstep::cli {
namespace {

bool moves_memory(const Operation& op) {
  return op.kind == OperationKind::kAlloc || op.kind == OperationKind::kFree;
}

bool has_message(const Operation& op) {
  return op.kind == OperationKind::kCollective || op.kind == OperationKind::kSend ||
         op.kind == OperationKind::kRecv;
}

/// Text of one operation's fields, for JSON and CSV alike; empty where a field does not apply.
struct Cells {
  std::string kind, work, collective, group, reduction, phase, stream, module, category;
  std::string elements, dtype, bytes, microbatch, peer, tag, root, buffer, dependencies;
};

Cells cells_of(const Listing& listing, const Operation& op) {
  const Plan& plan = listing.plan;
  Cells cells;
  cells.kind = name_of(op.kind);
  cells.work = op.work == Work::kNone ? "" : std::string(name_of(op.work));
  cells.phase = name_of(op.phase);
  cells.module = op.module == kNoModule ? "" : plan.graph->module_name(op.module);
  cells.microbatch = op.microbatch < 0 ? "" : std::to_string(op.microbatch);
  if (moves_memory(op)) {
    const Buffer& buffer = plan.buffers[static_cast<std::size_t>(listing.class_index)][op.buffer];
    cells.category = name_of(buffer.category);
    cells.elements = std::to_string(buffer.elements);
    cells.dtype = name_of(buffer.dtype);
    cells.bytes = std::to_string(buffer.bytes());
    cells.buffer = std::to_string(op.buffer);
    return cells;
  }
  cells.stream = name_of(op.stream);
  if (has_message(op)) {
    const bool collective = op.kind == OperationKind::kCollective;
    cells.collective = collective ? std::string(name_of(op.collective)) : "";
    cells.group = group_text(plan.mesh, plan.communicators[op.communicator]);
    cells.reduction = op.reduction == Reduction::kNone ? "" : std::string(name_of(op.reduction));
    cells.elements = std::to_string(op.elements);
    cells.dtype = name_of(op.dtype);
    cells.bytes = std::to_string(op.elements * size_of(op.dtype));
    cells.peer = collective ? "" : std::to_string(op.peer);
    cells.tag = collective ? "" : std::to_string(op.tag);
    cells.root = op.root < 0 ? "" : std::to_string(op.root);
  }
  cells.dependencies = fmt::format("{}", fmt::join(listing.program().dependencies_of(op), " "));
  return cells;
}

/// Module names hold no comma and no quote, so no cell needs quoting.
std::string csv_line(std::size_t index,
                     const Cells& cells,
                     const Operation& op,
                     std::int64_t held) {
  return fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                     index,
                     cells.kind,
                     cells.work,
                     cells.collective,
                     cells.group,
                     cells.reduction,
                     cells.phase,
                     cells.module,
                     cells.microbatch,
                     cells.stream,
                     cells.elements,
                     cells.dtype,
                     cells.bytes,
                     cells.peer,
                     cells.tag,
                     cells.root,
                     cells.category,
                     cells.buffer,
                     op.has(kControl) ? "control" : "",
                     cells.dependencies,
                     held);
}

std::string json_line(std::size_t index,
                      const Cells& cells,
                      const Operation& op,
                      const Listing& listing,
                      std::int64_t held) {
  std::string text = fmt::format("{{\"index\": {}", index);
  const auto word = [&text](const char* key, const std::string& value) {
    text += value.empty() ? "" : fmt::format(", \"{}\": {}", key, json_string(value));
  };
  const auto number = [&text](const char* key, const std::string& value) {
    text += value.empty() ? "" : fmt::format(", \"{}\": {}", key, value);
  };
  word("kind", cells.kind);
  word("work", cells.work);
  word("collective", cells.collective);
  word("group", cells.group);
  word("reduction", cells.reduction);
  word("phase", cells.phase);
  word("module", cells.module);
  number("microbatch", cells.microbatch);
  word("stream", cells.stream);
  number("elements", cells.elements);
  word("dtype", cells.dtype);
  number("bytes", cells.bytes);
  number("peer", cells.peer);
  number("tag", cells.tag);
  number("root", cells.root);
  word("category", cells.category);
  number("buffer", cells.buffer);
  if (op.has(kControl)) {
    text += ", \"control\": true";
  }
  if (op.dependencies > 0) {
    text += fmt::format(", \"dependencies\": [{}]",
                        fmt::join(listing.program().dependencies_of(op), ", "));
  }
  return text + fmt::format(", \"held_bytes\": {}}}", held);
}

/// visit(index, operation, bytes held after it) until it returns false.
template <typename Visit>
void for_each_operation(const Listing& listing, std::int64_t held, Visit&& visit) {
  const std::vector<Operation>& operations = listing.program().operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    held = held_after(listing, operations[i], held);
    if (!visit(i, operations[i], held)) {
      return;
    }
  }
}

}  // namespace

std::int64_t held_after(const Listing& listing, const Operation& op, std::int64_t held) {
  if (!moves_memory(op)) {
    return held;
  }
  const Buffer& buffer =
      listing.plan.buffers[static_cast<std::size_t>(listing.class_index)][op.buffer];
  const std::int64_t bytes = buffer.storage == Storage::kDevice ? buffer.bytes() : 0;
  return op.kind == OperationKind::kAlloc ? held + bytes : held - bytes;
}

void list_text(const Listing& listing, std::int64_t held, Printer& out) {
  out.add(fmt::format("{:>7}  {:<13}{:>12}  operation\n", "#", "stream", "held"));
  for_each_operation(listing, held, [&](std::size_t i, const Operation& op, std::int64_t now) {
    const bool memory = moves_memory(op);
    std::string line = fmt::format("{:>7}  {:<13}{:>12}  {}",
                                   i,
                                   memory ? "" : name_of(op.stream),
                                   memory ? bytes_text(now) : "",
                                   operation_text(listing.plan, listing.class_index, op));
    if (op.dependencies > 0) {
      line += fmt::format("  (after {})", fmt::join(listing.program().dependencies_of(op), ", "));
    }
    return out.add(line + "\n");
  });
}

void list_csv(const Listing& listing, std::int64_t held, Printer& out) {
  out.add(
      "index,kind,work,collective,group,reduction,phase,module,microbatch,stream,elements,dtype,"
      "bytes,peer,tag,root,category,buffer,control,dependencies,held_bytes\n");
  for_each_operation(listing, held, [&](std::size_t i, const Operation& op, std::int64_t now) {
    return out.add(csv_line(i, cells_of(listing, op), op, now));
  });
}

void list_json(const Listing& listing, std::int64_t held, Printer& out) {
  for_each_operation(listing, held, [&](std::size_t i, const Operation& op, std::int64_t now) {
    const std::string line = json_line(i, cells_of(listing, op), op, listing, now);
    return out.add((i == 0 ? "\n    " : ",\n    ") + line);
  });
}

}  // namespace lockstep::cli
