#include "core/imported_trace.h"

namespace lockstep {

NameId NameTable::intern(std::string_view text) {
  const auto found = ids_.find(text);
  if (found != ids_.end()) {
    return found->second;
  }
  const auto id = static_cast<NameId>(texts_.size());
  bytes_ += text.size();
  ids_.emplace(texts_.emplace_back(text), id);
  return id;
}

std::string_view name_of(ImportedKind kind) {
  switch (kind) {
    case ImportedKind::kCpu:
      return "cpu";
    case ImportedKind::kCompute:
      return "compute";
    case ImportedKind::kCommunication:
      return "communication";
    case ImportedKind::kCopy:
      return "memory copy";
    case ImportedKind::kAnnotation:
      return "annotation";
  }
  return "?";
}

}  // namespace lockstep
