#include "core/io/kineto_kinds.h"

#include <array>
#include <cctype>
#include <string>
#include <utility>

namespace lockstep {
namespace {

bool begins(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

constexpr std::size_t kLookedAt = 80;

/// Letters only, small.
std::string letters(std::string_view text) {
  std::string result;
  for (const char c : text.substr(0, kLookedAt)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return result;
}

/// Longer words first where one is part of another.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kCollectives = {{
    {"allreduce", "all_reduce"},
    {"reducescatter", "reduce_scatter"},
    {"allgather", "all_gather"},
    {"alltoall", "all_to_all"},
    {"sendrecv", "send_recv"},
    {"broadcast", "broadcast"},
    {"barrier", "barrier"},
    {"reduce", "reduce"},
    {"gather", "gather"},
    {"scatter", "scatter"},
    {"send", "send"},
    {"recv", "recv"},
}};

}  // namespace

ImportedKind kind_of_span(std::string_view category, std::string_view name) {
  if (category == "kernel") {
    const bool library = begins(name, "nccl") || begins(name, "rccl") || begins(name, "oneccl") ||
                         name.find("ncclKernel") != std::string_view::npos ||
                         name.find("ncclDevKernel") != std::string_view::npos;
    return library ? ImportedKind::kCommunication : ImportedKind::kCompute;
  }
  if (is_one_of(category, {"gpu_memcpy", "gpu_memset"})) {
    return ImportedKind::kCopy;
  }
  // Gloo, MPI and UCC work on threads of the host under the name of the collective.
  if (category == "user_annotation" &&
      (begins(name, "gloo:") || begins(name, "mpi:") || begins(name, "ucc:"))) {
    return ImportedKind::kCommunication;
  }
  if (is_one_of(category, {"communication", "waiting", "collective_comm"})) {
    return ImportedKind::kCommunication;
  }
  if (category == "compute") {
    return ImportedKind::kCompute;
  }
  if (is_one_of(category,
                {"user_annotation", "gpu_user_annotation", "Trace", "overhead", "step"})) {
    return ImportedKind::kAnnotation;
  }
  return ImportedKind::kCpu;
}

std::string_view collective_kind(std::string_view name) {
  const std::string text = letters(name);
  for (const auto& [spelling, kind] : kCollectives) {
    if (text.find(spelling) != std::string::npos) {
      return kind;
    }
  }
  return {};
}

std::optional<std::int64_t> dtype_bytes(std::string_view dtype) {
  if (is_one_of(dtype, {"Double", "Long", "UInt64", "ComplexFloat"})) {
    return 8;
  }
  if (is_one_of(dtype, {"Float", "Int", "UInt32"})) {
    return 4;
  }
  if (is_one_of(dtype, {"BFloat16", "Half", "Short", "UInt16"})) {
    return 2;
  }
  if (is_one_of(dtype, {"Byte", "Char", "Bool"}) || begins(dtype, "Float8")) {
    return 1;
  }
  return std::nullopt;
}

std::optional<int> rank_in_name(std::string_view name) {
  constexpr std::string_view kWord = "rank";
  constexpr std::size_t kMostDigits = 7;
  std::string small(name);
  for (char& c : small) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  for (std::size_t at = small.find(kWord); at != std::string::npos;
       at = small.find(kWord, at + 1)) {
    std::size_t digit = at + kWord.size();
    digit += digit < small.size() && is_one_of(small.substr(digit, 1), {"-", "_", " "}) ? 1 : 0;
    int rank = 0;
    std::size_t end = digit;
    for (;
         end < small.size() && end - digit < kMostDigits && small[end] >= '0' && small[end] <= '9';
         ++end) {
      rank = rank * 10 + (small[end] - '0');
    }
    if (end > digit) {
      return rank;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
