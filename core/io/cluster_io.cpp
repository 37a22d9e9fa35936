#include "core/io/cluster_io.h"

#include <string>

#include "core/error.h"
#include "core/io/field_reader.h"
#include "core/io/field_writer.h"

namespace lockstep {
namespace {

constexpr const char* kComponent = "cluster";

}  // namespace

ClusterSpec parse_cluster(std::string_view text, std::string_view source) {
  ReadContext context;
  context.source = printable(source, 200);
  ClusterSpec cluster;
  FieldReader::read_root(parse_json(text, source, kComponent), kClusterVersion, context, cluster);
  if (!context.problems.empty()) {
    throw BadInputError(kComponent, context.problems.one_line());
  }
  return cluster;
}

ClusterSpec load_cluster(const std::string& path) {
  return parse_cluster(read_text_file(path, kComponent), path);
}

std::string cluster_text(const ClusterSpec& cluster) {
  FieldWriter writer;
  writer.line("schema_version", std::to_string(kClusterVersion));
  visit_fields(writer, cluster);
  return writer.text() + "\n";
}

}  // namespace lockstep
