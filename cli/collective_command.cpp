// lockstep collective: one collective carried out for real on threads of this machine, its moves
// step by step.
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/error.h"
#include "core/io/collective_io.h"
#include "core/io/files.h"
#include "core/names.h"
#include "executor/record_collective.h"
#include "visualizer/models/collective_steps_text.h"

namespace lockstep::cli {
namespace {

constexpr const char* kDescription =
    "How a ring, a tree or direct reads move an all-reduce, step by step, as really carried "
    "out.\n\n"
    "  lockstep collective\n"
    "  lockstep collective --ranks 5 --algorithm tree --bytes 1000\n"
    "  lockstep collective --kind reduce_scatter --out steps.json\n\n"
    "The ranks are threads of this process. Inputs are small whole numbers, results are checked.\n";

constexpr std::int64_t kMostBytes = std::int64_t{8} << 20;

const std::vector<std::pair<std::string, Collective>> kKinds = {
    {"all_reduce", Collective::kAllReduce},
    {"reduce_scatter", Collective::kReduceScatter},
    {"all_gather", Collective::kAllGather},
    {"broadcast", Collective::kBroadcast},
    {"reduce", Collective::kReduce}};
const std::vector<std::pair<std::string, exec::Algorithm>> kAlgorithms = {
    {"ring", exec::Algorithm::kRing},
    {"tree", exec::Algorithm::kTree},
    {"direct", exec::Algorithm::kDirect}};
const std::vector<std::pair<std::string, DType>> kTypes = {
    {"fp32", DType::kFp32}, {"fp64", DType::kFp64}, {"bf16", DType::kBf16}, {"fp16", DType::kFp16}};

struct CollectiveCommand {
  std::string kind = "all_reduce";
  std::string algorithm;  ///< empty: ring, or tree where rings cannot
  std::string dtype = "fp32";
  int ranks = 4;
  int root = 0;
  std::int64_t bytes = 256;
  bool json = false;
  std::string out;

  int run() const {
    const CollectiveRecord record = exec::record_collective(wanted());
    if (record.moves.size() > kMostRecordedMoves) {
      throw UsageError("flags",
                       fmt::format("--bytes {}: {} moves, of which {} can be looked at",
                                   bytes,
                                   record.moves.size(),
                                   kMostRecordedMoves));
    }
    const view::CollectiveSteps steps(record);
    const std::string file = collective_text(record);
    if (!out.empty()) {
      write_whole(out, {file}, "collective");
    }
    print(json ? file
               : view::collective_steps_text(steps, {.utf8 = stdout_terminal().utf8}) +
                     padding_text(record));
    if (!steps.problems().empty()) {
      throw CheckFailedError("collective", steps.problems().front());
    }
    return 0;
  }

 private:
  template <typename Value>
  static Value named(const std::vector<std::pair<std::string, Value>>& names,
                     const char* flag,
                     const std::string& given) {
    std::vector<std::string_view> words;
    for (const auto& [name, value] : names) {
      if (name == given) {
        return value;
      }
      words.emplace_back(name);
    }
    throw UsageError("flags", fmt::format("{}: {}", flag, not_valid_message(given, words)));
  }

  exec::RecordedCollective wanted() const {
    const Collective collective = named(kKinds, "--kind", kind);
    const bool rooted = collective == Collective::kBroadcast || collective == Collective::kReduce;
    if (root != 0 && !rooted) {
      throw UsageError("flags", fmt::format("--root {}: a {} has no root", root, kind));
    }
    const std::string usual = rooted ? "tree" : "ring";
    exec::RecordedCollective result{
        .collective = collective,
        .algorithm = named(kAlgorithms, "--algorithm", algorithm.empty() ? usual : algorithm),
        .dtype = named(kTypes, "--dtype", dtype),
        .ranks = ranks,
        .root = root};
    const std::int64_t size = size_of(result.dtype);
    if (bytes % size != 0) {
      throw UsageError(
          "flags",
          fmt::format("--bytes {}: no whole number of {}, {} bytes each", bytes, dtype, size));
    }
    if (root >= ranks) {
      throw UsageError("flags", fmt::format("--root {}: there are {} ranks, from 0", root, ranks));
    }
    result.elements = bytes / size;
    return result;
  }

  std::string padding_text(const CollectiveRecord& record) const {
    return record.message_bytes == bytes
               ? ""
               : fmt::format("{} bytes were padded to {}: ranks hold equal shards\n",
                             bytes,
                             record.message_bytes);
  }
};

}  // namespace

void add_collective_command(CLI::App& program, Action& action) {
  const auto command = std::make_shared<CollectiveCommand>();
  CLI::App* app = program.add_subcommand("collective");
  app->description(kDescription);
  app->add_option("--ranks", command->ranks, "ranks (default 4)")
      ->check(CLI::Range(1, exec::kMostRecordedRanks));
  app->add_option("--kind",
                  command->kind,
                  "all_reduce (default), reduce_scatter, all_gather, broadcast, reduce");
  app->add_option("--algorithm",
                  command->algorithm,
                  "ring, tree, direct (default: ring, or tree for broadcast and reduce)");
  app->add_option("--bytes", command->bytes, "of the whole message (default 256, at most 8 MiB)")
      ->check(CLI::Range(std::int64_t{1}, kMostBytes));
  app->add_option("--dtype", command->dtype, "fp32 (default), fp64, bf16, fp16");
  app->add_option("--root", command->root, "of a broadcast or reduce (default 0)")
      ->check(CLI::Range(0, exec::kMostRecordedRanks - 1));
  app->add_flag("--json", command->json, "one JSON object: what --out writes");
  app->add_option("--out", command->out, "file for the moves");
  app->callback([command, &action] { action = [command] { return command->run(); }; });
}

}  // namespace lockstep::cli
