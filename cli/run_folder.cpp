#include "cli/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/error.h"
#include "core/io/files.h"
#include "core/io/json_reader.h"
#include "core/io/json_writer.h"
#include "core/io/scenario_io.h"
#include "executor/checkpoint.h"

namespace lockstep::cli {
namespace {

constexpr const char* kSettings = "run.json";

}  // namespace

std::string trace_file_of(const std::string& path, const char* component) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    return path;
  }
  std::string last;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(fs::path(path) / "trace", ignored)) {
    if (entry.path().extension() == ".lstrace") {
      last = std::max(last, entry.path().string());
    }
  }
  if (last.empty()) {
    throw BadInputError(component, path + ": a folder without trace/*.lstrace");
  }
  return last;
}

RunFolder::RunFolder(std::filesystem::path path, bool resume) : path_(std::move(path)) {
  const bool holds_run = std::filesystem::exists(scenario_file());
  const bool can_go_on = !exec::latest_checkpoint(checkpoints()).empty();
  if (can_go_on && !resume) {
    throw UsageError("train",
                     fmt::format("{} holds a run already: --resume goes on with it, --out DIR puts "
                                 "this one elsewhere",
                                 path_.string()));
  }
  if (resume && !holds_run) {
    throw UsageError("train", fmt::format("{} holds no training run", path_.string()));
  }
  if (resume && !can_go_on && is_locked()) {
    throw UsageError("train",
                     fmt::format("{}: another process trains there, without a checkpoint so far",
                                 path_.string()));
  }
  if (resume && !can_go_on) {
    throw BadInputError("train",
                        fmt::format("{}: no finished checkpoint; without --resume the run starts "
                                    "anew",
                                    checkpoints().string()));
  }
}

RunFolder::~RunFolder() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

bool RunFolder::is_locked() const {
  const int file = ::open((path_ / "lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  const bool locked = ::flock(file, LOCK_EX | LOCK_NB) != 0;
  ::close(file);
  return locked;
}

void RunFolder::lock() {
  const std::string file = (path_ / "lock").string();
  lock_ = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw NotSupportedError("train",
                            fmt::format("{}: cannot be written: {}", file, std::strerror(errno)));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    throw UsageError("train", fmt::format("{}: another process trains there", path_.string()));
  }
}

void RunFolder::open(const Scenario& scenario, const RunSettings& settings, std::int64_t steps) {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error) {
    throw NotSupportedError("train",
                            fmt::format("{}: cannot be made: {}", path_.string(), error.message()));
  }
  lock();
  write_whole(scenario_file(), {scenario_text(scenario)}, "train");
  JsonWriter writer;
  writer.begin_object();
  writer.field("data", settings.data);
  writer.field("documents", settings.documents);
  writer.field("steps", settings.steps);
  writer.field("checkpoint_every", settings.checkpoint_every);
  writer.field("evaluate_every", settings.evaluate_every);
  writer.end_object();
  write_whole(path_ / kSettings, {writer.text()}, "train");
  open_metrics(steps);
}

RunSettings RunFolder::settings() const {
  const std::string file = (path_ / kSettings).string();
  const JsonValue json = parse_json(read_text_file(file, "train"), file, "train");
  const auto number = [&](const char* key) {
    const JsonValue* value = json.find(key);
    if (value == nullptr || value->kind != JsonValue::Kind::kInteger || value->integer < 0) {
      throw BadInputError("train", fmt::format("{}: no number '{}'", file, key));
    }
    return value->integer;
  };
  const JsonValue* data = json.find("data");
  if (data == nullptr || data->kind != JsonValue::Kind::kString) {
    throw BadInputError("train", file + ": no text 'data'");
  }
  const JsonValue* documents = json.find("documents");  // runs of before have none
  return {data->string,
          documents != nullptr && documents->boolean,
          number("steps"),
          number("checkpoint_every"),
          number("evaluate_every")};
}

std::filesystem::path RunFolder::trace_file(std::int64_t step) const {
  std::filesystem::create_directories(path_ / "trace");
  return path_ / "trace" / fmt::format("step-{:08}.lstrace", step);
}

void RunFolder::open_metrics(std::int64_t steps) {
  const std::filesystem::path file = path_ / "metrics.jsonl";
  std::string kept;
  std::ifstream old(file);
  std::string line;
  for (std::int64_t i = 0; i < steps && std::getline(old, line); ++i) {
    kept += line + "\n";
  }
  old.close();
  write_whole(file, {kept}, "train");
  metrics_.open(file, std::ios::app);
}

void RunFolder::add_metrics(const exec::StepMetrics& metrics) {
  metrics_ << fmt::format("{{\"step\": {}, \"loss\": {:.9g}, ", metrics.step, metrics.loss);
  if (metrics.evaluation_loss) {
    metrics_ << fmt::format("\"evaluation_loss\": {:.9g}, ", *metrics.evaluation_loss);
  }
  metrics_ << fmt::format(
                  "\"learning_rate\": {:.9g}, \"seconds\": {:.6f}, \"tokens_per_s\": {:.1f}, "
                  "\"peak_bytes\": {}}}\n",
                  metrics.learning_rate,
                  metrics.seconds,
                  metrics.tokens_per_s,
                  metrics.peak_bytes)
           << std::flush;
  if (!metrics_) {
    throw NotSupportedError(
        "train", fmt::format("{}: cannot be written", (path_ / "metrics.jsonl").string()));
  }
}

void RunFolder::save_report(const std::string& json) const {
  write_whole(path_ / "report.json", {json}, "train");
}

}  // namespace lockstep::cli
