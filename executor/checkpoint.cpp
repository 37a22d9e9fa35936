#include "executor/checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"
#include "core/io/files.h"
#include "core/io/json_reader.h"
#include "core/names.h"
#include "core/parameter_map.h"
#include "executor/safetensors.h"

namespace lockstep::exec {
namespace {

constexpr const char* kManifest = "manifest.json";
constexpr std::size_t kMostParts = 4;
constexpr std::int64_t kBoxNumbers = 4;  // parameter, first, elements, offset

/// visit(parameter, run, offset in the shard) for every run of elements of the shard.
template <typename Visit>
void for_each_run(const ModelGraph& graph, const Shard& shard, Visit&& visit) {
  for_each_piece(shard.layout, shard.coordinate, [&](const LayoutPiece& piece) {
    const ParameterMap map(
        graph.parameter(piece.parameter), shard.tensor_degree, shard.tensor_coordinate);
    map.for_each_run(piece.first, piece.elements, [&](const ParameterRun& run) {
      visit(piece.parameter, run, piece.offset + run.local - piece.first);
    });
  });
}

std::string folder_name(std::int64_t step) {
  return fmt::format("step-{:08}", step);
}

std::int64_t whole_elements(const ParameterDef& parameter) {
  return parameter.rows * parameter.columns;
}

std::string statistics_name(std::uint32_t module, std::int32_t data_coordinate) {
  return fmt::format("running.{}.{}", module, data_coordinate);
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
bool all_finite_as(const NamedTensor& tensor) {
  for (std::size_t at = 0; at < tensor.data.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, tensor.data.data() + at, sizeof(T));
    if (!std::isfinite(value)) {
      return false;
    }
  }
  return true;
}

/// Of integers: always.
bool all_finite(const NamedTensor& tensor) {
  switch (tensor.dtype) {
    case DType::kFp64:
      return all_finite_as<double>(tensor);
    case DType::kFp32:
      return all_finite_as<float>(tensor);
    default:
      return true;
  }
}

}  // namespace

std::string part_name(std::size_t part) {
  return part == 0 ? "parameter" : fmt::format("state{}", part - 1);
}

// ---- writing -----------------------------------------------------------------------------------

CheckpointWriter::CheckpointWriter(const ModelGraph& graph,
                                   std::filesystem::path folder,
                                   std::int64_t step)
    : graph_(graph), folder_(std::move(folder)), step_(step) {
  std::filesystem::remove_all(partial());
  std::filesystem::create_directories(partial());
}

CheckpointWriter::~CheckpointWriter() {
  std::error_code ignored;
  std::filesystem::remove_all(partial(), ignored);
}

std::filesystem::path CheckpointWriter::partial() const {
  return folder_ / (folder_name(step_) + ".partial");
}

/// Replicas hold the same elements: the lowest rank that shows them writes them.
void CheckpointWriter::add(const Shard& shard) {
  LOCKSTEP_CHECK(shard.parts.size() <= kMostParts, "shard has too many states");
  const std::lock_guard lock(mutex_);
  shown_[shard.place.rank].push_back({shard, {shard.parts.begin(), shard.parts.end()}});
  for_each_run(graph_, shard, [&](std::int32_t parameter, const ParameterRun& run, std::int64_t) {
    for (std::size_t part = 0; part < shard.parts.size(); ++part) {
      const auto claim =
          writer_.try_emplace({part, parameter, run.logical}, shard.place.rank).first;
      claim->second = std::min(claim->second, shard.place.rank);
    }
  });
}

void CheckpointWriter::add(const RunningStatistics& statistics) {
  const Operand& from = statistics.values;
  const auto* const bytes = from.as<std::byte>();
  const std::lock_guard lock(mutex_);
  statistics_[statistics.place.rank]
             [statistics_name(statistics.module, statistics.place.data_coordinate)] = {
                 from.dtype, {from.elements}, {bytes, bytes + from.elements * size_of(from.dtype)}};
}

void CheckpointWriter::copy_part(const Shown& shown, std::size_t part, File& file) const {
  const Operand& from = shown.parts[part];
  const std::int64_t size = size_of(from.dtype);
  LOCKSTEP_CHECK(from.dtype == DType::kFp32 || from.dtype == DType::kFp64,
                 "not what is computed in");
  NamedTensor& tensor = file.data[part];
  tensor.dtype = from.dtype;
  for_each_run(graph_,
               shown.shard,
               [&](std::int32_t parameter, const ParameterRun& run, std::int64_t offset) {
                 if (writer_.at({part, parameter, run.logical}) != shown.shard.place.rank) {
                   return;
                 }
                 const auto written = static_cast<std::int64_t>(tensor.data.size()) / size;
                 file.boxes[part].insert(file.boxes[part].end(),
                                         {parameter, run.logical, run.elements, written});
                 const std::byte* begin = from.as<std::byte>() + offset * size;
                 tensor.data.insert(tensor.data.end(), begin, begin + run.elements * size);
               });
}

void CheckpointWriter::finish(std::int32_t rank) {
  std::vector<Shown> shown;
  NamedTensors tensors;
  {
    const std::lock_guard lock(mutex_);
    shown = std::move(shown_[rank]);
    tensors = std::move(statistics_[rank]);
  }
  File file;
  for (const Shown& each : shown) {
    for (std::size_t part = 0; part < each.parts.size(); ++part) {
      copy_part(each, part, file);  // all have shown theirs: nobody changes the claims now
    }
  }
  for (std::size_t part = 0; part < kMostParts; ++part) {
    if (!file.boxes[part].empty()) {
      const auto rows = static_cast<std::int64_t>(file.boxes[part].size()) / kBoxNumbers;
      NamedTensor& data = file.data[part];
      data.shape = {static_cast<std::int64_t>(data.data.size()) / size_of(data.dtype)};
      tensors[part_name(part)] = std::move(data);
      tensors[part_name(part) + ".boxes"] = {
          DType::kInt64, {rows, kBoxNumbers}, bytes_of(file.boxes[part])};
    }
  }
  write_safetensors(partial() / fmt::format("rank-{:05}.safetensors", rank), tensors);
  const auto broken = std::find_if(
      tensors.begin(), tensors.end(), [](const auto& it) { return !all_finite(it.second); });
  const std::lock_guard lock(mutex_);
  finished_.insert(rank);
  if (broken != tensors.end()) {
    broken_ = fmt::format("{} of rank {}", broken->first, rank);
  }
}

std::filesystem::path CheckpointWriter::publish() {
  if (!broken_.empty()) {
    throw CheckFailedError(
        "train",
        fmt::format("after step {} {} holds infinities or NaN: nothing is saved; "
                    "lower training.learning_rate or raise training.epsilon",
                    step_,
                    broken_));
  }
  const std::string manifest = fmt::format(
      "{{\n  \"version\": 1,\n  \"step\": {},\n  \"model\": \"{}\",\n  \"parameters\": {},\n"
      "  \"ranks\": [{}]\n}}\n",
      step_,
      graph_.model.name,
      graph_.parameter_count(),
      fmt::join(finished_, ", "));
  write_whole(partial() / kManifest, {manifest}, "checkpoint");
  std::filesystem::path whole = folder_ / folder_name(step_);
  std::filesystem::remove_all(whole);
  std::filesystem::rename(partial(), whole);
  return whole;
}

// ---- reading -----------------------------------------------------------------------------------

namespace {

std::int64_t integer_of(const JsonValue& manifest, const char* key, const std::string& path) {
  const JsonValue* value = manifest.find(key);
  if (value == nullptr || value->kind != JsonValue::Kind::kInteger) {
    throw BadInputError("checkpoint", fmt::format("{}: no number '{}'", path, key));
  }
  return value->integer;
}

}  // namespace

Checkpoint::Checkpoint(const ModelGraph& graph, const std::filesystem::path& folder)
    : graph_(graph) {
  const std::string path = (folder / kManifest).string();
  const JsonValue manifest = parse_json(read_text_file(path, "checkpoint"), path, "checkpoint");
  if (integer_of(manifest, "version", path) != 1) {
    throw BadInputError("checkpoint", path + ": only version 1 is known");
  }
  step_ = integer_of(manifest, "step", path);
  if (step_ < 0) {
    throw BadInputError("checkpoint", fmt::format("{}: step {}", path, step_));
  }
  if (integer_of(manifest, "parameters", path) != graph.parameter_count()) {
    throw BadInputError("checkpoint",
                        fmt::format("{}: is of a model with {} parameters, this one has {}",
                                    path,
                                    integer_of(manifest, "parameters", path),
                                    graph.parameter_count()));
  }
  const JsonValue* ranks = manifest.find("ranks");
  if (ranks == nullptr) {
    throw BadInputError("checkpoint", path + ": no list 'ranks'");
  }
  for (const JsonValue& rank : ranks->items) {
    load(folder / fmt::format("rank-{:05}.safetensors", rank.integer));
  }
  check_whole(path);
}

void Checkpoint::load(const std::filesystem::path& path) {
  NamedTensors tensors = read_safetensors(path);
  for (std::size_t part = 0; part < kMostParts; ++part) {
    const auto boxes = tensors.find(part_name(part) + ".boxes");
    const auto data = tensors.find(part_name(part));
    if (boxes == tensors.end()) {
      continue;
    }
    const bool usable = data != tensors.end() && boxes->second.dtype == DType::kInt64 &&
                        boxes->second.shape.size() == 2 && boxes->second.shape[1] == kBoxNumbers &&
                        (data->second.dtype == DType::kFp32 || data->second.dtype == DType::kFp64);
    if (!usable) {
      throw BadInputError("checkpoint", path.string() + ": " + part_name(part) + " is malformed");
    }
    const std::int64_t rows = boxes->second.shape[0];
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t box[kBoxNumbers];
      std::memcpy(box,
                  boxes->second.data.data() + row * static_cast<std::int64_t>(sizeof(box)),
                  sizeof(box));
      place(part, box, data->second, path.string());
    }
  }
  statistics_.merge(tensors);  // found by their names
}

void Checkpoint::place(std::size_t part,
                       std::span<const std::int64_t> box,
                       const NamedTensor& data,
                       const std::string& path) {
  const std::int64_t parameter = box[0];
  const std::int64_t first = box[1];
  const std::int64_t elements = box[2];
  const std::int64_t offset = box[3];
  const bool known = parameter >= 0 && parameter < graph_.parameter_total();
  const std::int64_t whole =
      known ? whole_elements(graph_.parameter(static_cast<std::int32_t>(parameter))) : 0;
  if (!known || first < 0 || elements < 1 || first > whole - elements || offset < 0 ||
      offset > data.shape[0] - elements) {
    throw BadInputError("checkpoint",
                        fmt::format("{}: {} names elements {} to {} of parameter {}: not there",
                                    path,
                                    part_name(part),
                                    first,
                                    first + elements,
                                    parameter));
  }
  Part& it = values_[{part, static_cast<std::int32_t>(parameter)}];
  it.values.resize(static_cast<std::size_t>(whole));
  it.filled += elements;
  double* const to = it.values.data() + first;
  if (data.dtype == DType::kFp64) {
    std::memcpy(
        to, data.data.data() + offset * 8, static_cast<std::size_t>(elements) * sizeof(double));
    return;
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    float value = 0;
    std::memcpy(&value, data.data.data() + (offset + i) * 4, sizeof(value));
    to[i] = static_cast<double>(value);
  }
}

void Checkpoint::check_whole(const std::string& path) const {
  for (std::int32_t id = 0; id < graph_.parameter_total(); ++id) {
    if (graph_.parameter(id).tied) {
      continue;
    }
    const auto found = values_.find({0, id});
    if (found == values_.end() || found->second.filled != whole_elements(graph_.parameter(id))) {
      throw BadInputError("checkpoint",
                          fmt::format("{}: {} of {} elements of {}",
                                      path,
                                      found == values_.end() ? 0 : found->second.filled,
                                      whole_elements(graph_.parameter(id)),
                                      graph_.parameter_name(id)));
    }
  }
}

bool Checkpoint::read(std::size_t part,
                      std::int32_t parameter,
                      std::int64_t first,
                      std::int64_t n,
                      double* values) const {
  // A tied copy is the weight that it is tied to, where it was not saved itself.
  auto found = values_.find({part, parameter});
  if (found == values_.end() && graph_.parameter(parameter).tied) {
    found = values_.find({part, 0});
  }
  if (found == values_.end()) {
    return false;
  }
  std::copy_n(found->second.values.data() + first, n, values);
  return true;
}

void Checkpoint::fill(const Shard& shard) const {
  std::vector<double> values;
  for (std::size_t part = 0; part < shard.parts.size(); ++part) {
    const Operand& to = shard.parts[part];
    for_each_run(
        graph_, shard, [&](std::int32_t parameter, const ParameterRun& run, std::int64_t offset) {
          values.resize(static_cast<std::size_t>(run.elements));
          if (!read(part, parameter, run.logical, run.elements, values.data())) {
            throw BadInputError("checkpoint",
                                fmt::format("it has no {} of {}: saved with another optimizer?",
                                            part_name(part),
                                            graph_.parameter_name(parameter)));
          }
          for (std::int64_t i = 0; i < run.elements; ++i) {
            const double value = values[static_cast<std::size_t>(i)];
            if (to.dtype == DType::kFp64) {
              to.as<double>()[offset + i] = value;
            } else {
              to.as<float>()[offset + i] = static_cast<float>(value);
            }
          }
        });
  }
}

void Checkpoint::fill(const RunningStatistics& statistics) const {
  auto found =
      statistics_.find(statistics_name(statistics.module, statistics.place.data_coordinate));
  if (found == statistics_.end()) {
    found = statistics_.find(statistics_name(statistics.module, 0));
  }
  const Operand& to = statistics.values;
  if (found == statistics_.end() || found->second.dtype != to.dtype ||
      found->second.shape != std::vector<std::int64_t>{to.elements}) {
    throw BadInputError("checkpoint",
                        fmt::format("it has no {} running statistics of {} in {}",
                                    to.elements,
                                    graph_.module_name(statistics.module),
                                    name_of(to.dtype)));
  }
  std::memcpy(to.data, found->second.data.data(), found->second.data.size());
}

std::filesystem::path latest_checkpoint(const std::filesystem::path& folder) {
  std::filesystem::path latest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const bool finished =
        std::filesystem::exists(entry.path() / kManifest) && entry.path().extension() != ".partial";
    if (finished && entry.path().filename() > latest.filename()) {
      latest = entry.path();
    }
  }
  return latest;
}

}  // namespace lockstep::exec
