#include "executor/safetensors.h"

#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "core/checksum.h"
#include "core/error.h"
#include "core/io/files.h"
#include "core/io/json_reader.h"

namespace lockstep::exec {
namespace {

struct TypeName {
  DType dtype;
  const char* name;
};
constexpr TypeName kTypeNames[] = {{DType::kFp64, "F64"},
                                   {DType::kFp32, "F32"},
                                   {DType::kBf16, "BF16"},
                                   {DType::kFp16, "F16"},
                                   {DType::kInt64, "I64"},
                                   {DType::kInt32, "I32"},
                                   {DType::kUint8, "U8"}};

const char* type_name(DType dtype) {
  for (const TypeName& each : kTypeNames) {
    if (each.dtype == dtype) {
      return each.name;
    }
  }
  return "";
}

std::string_view text_of(const std::vector<std::byte>& data) {
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

class Reader {
 public:
  explicit Reader(const std::filesystem::path& path)
      : path_(path.string()), bytes_(read_whole(path, "checkpoint")) {}

  NamedTensors read() {
    std::uint64_t length = 0;
    if (bytes_.size() < sizeof(length)) {
      refuse("is too short for a header");
    }
    std::memcpy(&length, bytes_.data(), sizeof(length));
    if (length > bytes_.size() - sizeof(length)) {
      refuse(fmt::format("names a header of {} bytes, the file has {}", length, bytes_.size()));
    }
    const JsonValue header =
        parse_json(std::string_view(bytes_).substr(sizeof(length), length), path_, "checkpoint");
    data_ = std::string_view(bytes_).substr(sizeof(length) + length);
    NamedTensors tensors;
    for (std::size_t i = 0; i < header.keys.size(); ++i) {
      if (header.keys[i].name != "__metadata__") {
        tensors[header.keys[i].name] = tensor(header.keys[i].name, header.items[i]);
      }
    }
    check_sum(header.find("__metadata__"), tensors);
    return tensors;
  }

 private:
  NamedTensor tensor(const std::string& name, const JsonValue& value) const {
    const JsonValue* type = value.find("dtype");
    const JsonValue* shape = value.find("shape");
    const JsonValue* offsets = value.find("data_offsets");
    if (type == nullptr || shape == nullptr || offsets == nullptr || offsets->items.size() != 2) {
      refuse(name + " lacks dtype, shape or data_offsets");
    }
    NamedTensor result;
    bool known = false;
    for (const TypeName& each : kTypeNames) {
      if (type->string == each.name) {
        result.dtype = each.dtype;
        known = true;
      }
    }
    if (!known) {
      refuse(fmt::format("{} has unknown dtype '{}'", name, type->string));
    }
    std::int64_t elements = 1;
    for (const JsonValue& extent : shape->items) {
      result.shape.push_back(extent.integer);
      if (extent.integer < 0 || __builtin_mul_overflow(elements, extent.integer, &elements)) {
        refuse(name + " has an impossible shape");
      }
    }
    const std::int64_t first = offsets->items[0].integer;
    const std::int64_t last = offsets->items[1].integer;
    std::int64_t wanted = 0;
    if (first < 0 || last < first || last > static_cast<std::int64_t>(data_.size()) ||
        __builtin_mul_overflow(elements, size_of(result.dtype), &wanted) ||
        last - first != wanted) {
      refuse(fmt::format("{}: bytes {} to {} of {} do not hold its shape (truncated?)",
                         name,
                         first,
                         last,
                         data_.size()));
    }
    const auto* begin = reinterpret_cast<const std::byte*>(data_.data());
    result.data.assign(begin + first, begin + last);
    return result;
  }

  /// Files of others have no checksum of ours.
  void check_sum(const JsonValue* metadata, const NamedTensors& tensors) const {
    const JsonValue* written = metadata != nullptr ? metadata->find("checksum") : nullptr;
    if (written == nullptr) {
      return;
    }
    std::uint64_t sum = 0;
    for (const auto& each : tensors) {
      sum = checksum_of(text_of(each.second.data), sum);
    }
    if (written->string != fmt::format("{:016x}", sum)) {
      refuse("is damaged: its checksum differs; another checkpoint of the run may be whole");
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw BadInputError("checkpoint", path_ + ": " + what);
  }

  std::string path_;
  std::string bytes_;
  std::string_view data_;
};

}  // namespace

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors) {
  std::uint64_t sum = 0;
  for (const auto& each : tensors) {
    sum = checksum_of(text_of(each.second.data), sum);
  }
  // Values of metadata are strings by the format.
  std::string header = fmt::format("{{\"__metadata__\":{{\"checksum\":\"{:016x}\"}}", sum);
  std::size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header += fmt::format(",\"{}\":{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          name,
                          type_name(tensor.dtype),
                          fmt::join(tensor.shape, ","),
                          offset,
                          offset + tensor.data.size());
    offset += tensor.data.size();
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // data is 8-byte aligned
  const std::uint64_t length = header.size();
  std::vector<std::string_view> parts{{reinterpret_cast<const char*>(&length), sizeof(length)},
                                      header};
  for (const auto& each : tensors) {
    parts.push_back(text_of(each.second.data));
  }
  write_whole(path, parts, "checkpoint");
}

NamedTensors read_safetensors(const std::filesystem::path& path) {
  return Reader(path).read();
}

}  // namespace lockstep::exec
