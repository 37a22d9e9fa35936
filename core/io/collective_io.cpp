#include "core/io/collective_io.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/field_reader.h"
#include "core/io/field_writer.h"

namespace lockstep {
namespace {

constexpr const char* kComponent = "collective";
constexpr std::int64_t kMostRanks = 64;

/// What has steps to walk through.
constexpr std::array kCollectives = {Collective::kAllReduce,
                                     Collective::kReduceScatter,
                                     Collective::kAllGather,
                                     Collective::kBroadcast,
                                     Collective::kReduce};

struct MoveFields {
  std::int64_t step = 0;
  std::int64_t src = 0;
  std::int64_t dst = 0;
  std::int64_t chunk = 0;
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
  bool reduces = false;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

template <typename Visitor, typename Fields>
requires std::is_same_v<std::remove_const_t<Fields>, MoveFields>
void visit_fields(Visitor& v, Fields& move) {
  v.field("step", move.step, "of the algorithm, from 0");
  v.field("src", move.src, "rank");
  v.field("dst", move.dst, "rank");
  v.field("chunk", move.chunk, "the algorithm's number");
  v.field("begin", move.begin, "first byte in the message");
  v.field("bytes", move.bytes, "bytes");
  v.field("reduces", move.reduces, "added to what dst had");
  v.field("start_ns", move.start_ns, "when it began");
  v.field("end_ns", move.end_ns, "when it was there");
}

struct RecordFields {
  std::string collective;
  std::string algorithm;
  DType dtype = DType::kFp32;
  std::int64_t ranks = 0;
  std::int64_t root = 0;
  std::int64_t message_bytes = 0;
  std::int64_t time_ns = 0;
  std::vector<MoveFields> moves;
};

template <typename Visitor, typename Fields>
void visit_head(Visitor& v, Fields& record) {
  v.field("collective", record.collective, "all_reduce, ...");
  v.field("algorithm", record.algorithm, "ring, tree, direct");
  v.field("dtype", record.dtype, "of the elements");
  v.field("ranks", record.ranks, "ranks");
  v.field("root", record.root, "of a broadcast or reduce");
  v.field("message_bytes", record.message_bytes, "of the whole message");
  v.field("time_ns", record.time_ns, "from when all were there to the last one's end");
}

template <typename Visitor>
void visit_fields(Visitor& v, RecordFields& record) {
  visit_head(v, record);
  v.section("moves", record.moves, "every piece of data that went from one rank to another");
}

/// An object on one line.
class LineWriter {
 public:
  template <typename T>
  void field(const char* key, const T& value, const char* /*help*/) {
    text_ += (text_.empty() ? "" : ", ") + json_string(key) + ": " + json_text(value);
  }
  std::string text() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

MoveFields fields_of(const ChunkMove& move) {
  return {move.step,
          move.src,
          move.dst,
          move.chunk,
          move.begin,
          move.bytes,
          move.reduces,
          move.t0,
          move.t1};
}

ChunkMove move_of(const MoveFields& fields) {
  ChunkMove move;
  move.step = static_cast<std::int32_t>(fields.step);
  move.src = static_cast<std::int32_t>(fields.src);
  move.dst = static_cast<std::int32_t>(fields.dst);
  move.chunk = static_cast<std::int32_t>(fields.chunk);
  move.begin = fields.begin;
  move.bytes = fields.bytes;
  move.reduces = fields.reduces;
  move.t0 = fields.start_ns;
  move.t1 = fields.end_ns;
  return move;
}

bool is_rank(std::int64_t rank, const RecordFields& record) {
  return rank >= 0 && rank < record.ranks;
}

void check_move(const MoveFields& move, std::size_t index, const RecordFields& record) {
  const auto refuse = [&](const std::string& what) {
    throw BadInputError(kComponent, fmt::format("moves[{}]: {}", index, what));
  };
  if (!is_rank(move.src, record) || !is_rank(move.dst, record) || move.src == move.dst) {
    refuse(fmt::format("goes from rank {} to rank {} of {}", move.src, move.dst, record.ranks));
  }
  if (move.begin < 0 || move.bytes < 0 || move.begin > record.message_bytes ||
      move.bytes > record.message_bytes - move.begin) {
    refuse(fmt::format("{} bytes from byte {} do not lie in a message of {}",
                       move.bytes,
                       move.begin,
                       record.message_bytes));
  }
  constexpr auto kMost = std::int64_t{1} << 20;
  if (move.step < 0 || move.step > kMost || move.chunk < 0 || move.chunk > kMost) {
    refuse(fmt::format("step {} and chunk {} go from 0 to {}", move.step, move.chunk, kMost));
  }
}

void check_record(const RecordFields& record) {
  if (record.ranks < 1 || record.ranks > kMostRanks) {
    throw BadInputError(kComponent,
                        fmt::format("ranks: {} is not from 1 to {}", record.ranks, kMostRanks));
  }
  if (!is_rank(record.root, record)) {
    throw BadInputError(kComponent,
                        fmt::format("root: {} is none of {} ranks", record.root, record.ranks));
  }
  if (record.message_bytes < 0 || record.message_bytes > kMaxDeviceBytes) {
    throw BadInputError(
        kComponent,
        fmt::format(
            "message_bytes: {} is not from 0 to {}", record.message_bytes, kMaxDeviceBytes));
  }
  for (std::size_t i = 0; i < record.moves.size(); ++i) {
    check_move(record.moves[i], i, record);
  }
}

Collective collective_named(const std::string& name) {
  std::vector<std::string_view> names;
  for (const Collective collective : kCollectives) {
    names.push_back(name_of(collective));
    if (name == names.back()) {
      return collective;
    }
  }
  throw BadInputError(kComponent, "collective: " + not_valid_message(name, names));
}

}  // namespace

std::string collective_text(const CollectiveRecord& record) {
  const RecordFields fields{std::string(name_of(record.collective)),
                            record.algorithm,
                            record.dtype,
                            record.ranks,
                            record.root,
                            record.message_bytes,
                            record.time,
                            {}};
  std::string moves;
  for (const ChunkMove& move : record.moves) {
    const MoveFields one = fields_of(move);
    LineWriter line;
    visit_fields(line, one);
    moves += (moves.empty() ? "\n    " : ",\n    ") + line.text();
  }
  FieldWriter writer;
  writer.line("schema_version", std::to_string(kCollectiveVersion));
  visit_head(writer, fields);
  writer.line("moves", "[" + moves + "]");
  return writer.text() + "\n";
}

CollectiveRecord parse_collective(std::string_view text, std::string_view source) {
  ReadContext context;
  context.source = printable(source, 200);
  RecordFields fields;
  FieldReader::read_root(parse_json(text, source, kComponent), kCollectiveVersion, context, fields);
  if (!context.problems.empty()) {
    throw BadInputError(kComponent, context.problems.one_line());
  }
  check_record(fields);
  CollectiveRecord record;
  record.collective = collective_named(fields.collective);
  record.algorithm = printable(fields.algorithm, 40);
  record.dtype = fields.dtype;
  record.ranks = static_cast<std::int32_t>(fields.ranks);
  record.root = static_cast<std::int32_t>(fields.root);
  record.message_bytes = fields.message_bytes;
  record.time = fields.time_ns;
  for (const MoveFields& move : fields.moves) {
    record.moves.push_back(move_of(move));
  }
  if (record.is_sharded() && record.message_bytes % record.ranks != 0) {
    throw BadInputError(
        kComponent,
        fmt::format(
            "message_bytes: {} are not {} equal shards", record.message_bytes, record.ranks));
  }
  return record;
}

CollectiveRecord load_collective(const std::string& path) {
  return parse_collective(read_text_file(path, kComponent), path);
}

}  // namespace lockstep
