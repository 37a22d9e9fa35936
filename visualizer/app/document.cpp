#include "visualizer/app/document.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/error.h"
#include "core/io/collective_io.h"
#include "core/io/hf_config.h"
#include "core/io/json_reader.h"
#include "core/io/kineto_reader.h"
#include "core/io/scenario_io.h"
#include "core/io/trace_io.h"
#include "core/planner/planner.h"
#include "simulator/simulate.h"
#include "visualizer/app/presets.h"

namespace lockstep::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kComponent = "open";
constexpr std::string_view kTraceMark = "LSTRACE\n";
constexpr std::size_t kLookedAt = 65536;  ///< of a file, to tell what it is
constexpr std::int64_t kUsualSequence = 4096;

DocumentPtr finished(std::shared_ptr<Document> document, int step = -1) {
  const auto steps = static_cast<int>(document->trace.steps.size());
  if (steps == 0) {
    throw BadInputError(kComponent, "the trace holds no step");
  }
  document->step = step < 0 ? steps - 1 : std::min(step, steps - 1);
  document->report = make_report(
      document->plan, document->trace, report_facts(document->scenario), document->step);
  return document;
}

std::string beginning(const fs::path& path, std::size_t length) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    throw BadInputError(kComponent, fmt::format("{}: cannot be read", path.string()));
  }
  std::string text(length, '\0');
  file.read(text.data(), static_cast<std::streamsize>(length));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

/// The newest trace of a run, or nothing when it has none yet.
std::optional<fs::path> newest_trace(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder / "trace", error)) {
    if (entry.path().extension() == ".lstrace") {
      files.push_back(entry.path());
    }
  }
  const auto newest = std::max_element(files.begin(), files.end());
  return newest == files.end() ? std::nullopt : std::optional(*newest);
}

/// Chrome's JSON says so near its beginning, or is an array; configurations are neither.
bool is_foreign_trace(std::string_view start) {
  constexpr std::string_view kGzip = "\x1f\x8b";
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return start.substr(0, kGzip.size()) == kGzip ||
         (first != std::string_view::npos && start[first] == '[') ||
         start.find("\"traceEvents\"") != std::string_view::npos;
}

bool has_foreign_traces(const fs::path& folder) {
  std::error_code error;
  const fs::directory_iterator files(folder, error);
  return std::any_of(begin(files), end(files), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return name.ends_with(".json") || name.ends_with(".json.gz");
  });
}

Opened open_foreign(const fs::path& path, const StopCheck& stop_check) {
  return {Scenario{}, import_document(path.string(), stop_check), nullptr};
}

Opened open_folder(const fs::path& folder, const StopCheck& stop_check) {
  if (!fs::exists(folder / "scenario.json")) {
    if (has_foreign_traces(folder)) {
      return open_foreign(folder, stop_check);
    }
    throw BadInputError(kComponent,
                        fmt::format("{}: a folder with neither scenario.json (a training run) nor "
                                    "*.json or *.json.gz (traces of a profiler)",
                                    folder.string()));
  }
  const std::optional<fs::path> trace = newest_trace(folder);
  if (trace) {
    const DocumentPtr document = load_document(trace->string(), stop_check);
    return {document->scenario, document, nullptr};
  }
  return {load_scenario((folder / "scenario.json").string()), nullptr, nullptr};
}

/// A Hugging Face configuration has a model_type or architectures, a recorded collective has moves;
/// a scenario has none of them.
Opened open_json(const std::string& path) {
  const JsonValue json = parse_json(read_text_file(path, kComponent), path, kComponent);
  if (json.find("moves") != nullptr) {
    return {{}, nullptr, std::make_shared<const CollectiveRecord>(load_collective(path))};
  }
  if (json.find("model_type") == nullptr && json.find("architectures") == nullptr) {
    return {load_scenario(path), nullptr, nullptr, path};
  }
  Scenario scenario = preset_scenario(presets().front());
  scenario.model = load_hf_config(path).model;
  scenario.name = scenario.model.name;
  scenario.training.seq_len = std::min(scenario.model.max_position, kUsualSequence);
  return {std::move(scenario), nullptr, nullptr};
}

}  // namespace

DocumentPtr simulate_document(const Scenario& scenario, const StopCheck& stop_check) {
  const auto document = std::make_shared<Document>();
  document->scenario = resolved(scenario);
  require_valid(document->scenario);
  document->plan = make_plan(document->scenario, {false, false, stop_check});
  check_stop(stop_check);
  sim::SimulationOptions options;
  options.stop_check = stop_check;
  document->trace = sim::simulate(document->plan, document->scenario.cluster, options).trace;
  check_stop(stop_check);
  document->memory = memory_report(document->scenario, {.plan = &document->plan});
  check_stop(stop_check);
  return finished(document);
}

DocumentPtr at_step(const Document& document, int step) {
  return finished(std::make_shared<Document>(document), step);
}

DocumentPtr load_document(const std::string& path, const StopCheck& stop_check) {
  const auto document = std::make_shared<Document>();
  LoadedTrace loaded = load_trace(path, stop_check);
  document->scenario = std::move(loaded.scenario);
  document->plan = std::move(loaded.plan);
  document->trace = std::move(loaded.trace);
  document->memory = memory_report(document->scenario);
  document->file = path;
  return finished(document);
}

DocumentPtr import_document(const std::string& path, const StopCheck& stop_check) {
  const auto document = std::make_shared<Document>();
  document->imported = std::make_shared<const ImportedTrace>(import_kineto({path}, stop_check));
  document->file = path;
  return document;
}

Opened open_path(const std::string& path, const StopCheck& stop_check) {
  const fs::path file(path);
  if (!fs::exists(file)) {
    if (const Preset* preset = find_preset(path)) {
      return {preset_scenario(*preset), nullptr, nullptr};
    }
    throw BadInputError(kComponent, fmt::format("{}: there is no such file", path));
  }
  if (fs::is_directory(file)) {
    return open_folder(file, stop_check);
  }
  const std::string start = beginning(file, kLookedAt);
  if (start.empty()) {
    throw BadInputError(kComponent, fmt::format("{}: the file is empty", path));
  }
  if (start.starts_with(kTraceMark)) {
    const DocumentPtr document = load_document(path, stop_check);
    return {document->scenario, document, nullptr};
  }
  return is_foreign_trace(start) ? open_foreign(file, stop_check) : open_json(path);
}

}  // namespace lockstep::app
