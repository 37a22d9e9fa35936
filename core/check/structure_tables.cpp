// Rule "structure", tables: mesh, sections, scalars and buffers agree with each other. A broken
// table makes all that follows meaningless, so nothing else is checked then.

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "core/check/plan_rules.h"
#include "core/check/ranges.h"
#include "core/model_graph.h"
#include "core/plan_text.h"

namespace lockstep {
namespace {

constexpr AxisMask kAllAxes = (1U << static_cast<unsigned>(kAxisCount)) - 1U;

class TableCheck {
 public:
  explicit TableCheck(const CheckContext& context) : plan_(context.plan), context_(context) {}

  bool run() {
    check_mesh();
    if (good_) {
      check_sizes();
    }
    if (good_) {
      check_sections();
      check_scalars();
      for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
        check_buffers(static_cast<int>(i));
      }
    }
    return good_;
  }

 private:
  void fault(std::string message, int class_index = -1, int section = -1) {
    good_ = false;
    context_.problems.add({PlanRule::kStructure, std::move(message), class_index, section, -1});
  }

  void check_mesh() {
    for (int number = 0; number < kAxisCount; ++number) {
      const Axis axis = static_cast<Axis>(number);
      if (plan_.mesh.size(axis) < 1) {
        fault(fmt::format("axis {} has size {}", name_of(axis), plan_.mesh.size(axis)));
      }
    }
    if ((plan_.class_axes & ~kAllAxes) != 0) {
      fault(fmt::format("class axes {:#x} name an axis that does not exist", plan_.class_axes));
    }
    for (std::size_t i = 0; i < plan_.communicators.size(); ++i) {
      if ((plan_.communicators[i].axes & ~kAllAxes) != 0) {
        fault(fmt::format("communicator {} names an axis that does not exist", i));
      }
    }
  }

  void check_sizes() {
    const auto classes = static_cast<std::size_t>(plan_.class_count());
    if (plan_.buffers.size() != classes) {
      fault(fmt::format("{} buffer tables for {} classes", plan_.buffers.size(), classes));
    }
    if (plan_.shapes.empty()) {
      fault("shape table lacks entry 0 (none)");
    }
    for (std::size_t i = 0; i < plan_.sections.size(); ++i) {
      const Section& section = plan_.sections[i];
      if (!in_range(section.kind, SectionKind::kSave)) {
        fault(fmt::format("section {} has an unknown kind", i), -1, static_cast<int>(i));
      }
      if (section.programs.size() != classes) {
        fault(fmt::format(
                  "section {} has {} programs for {} classes", i, section.programs.size(), classes),
              -1,
              static_cast<int>(i));
      }
    }
  }

  void check_sections() {
    for (std::size_t i = 0; i < plan_.sections.size(); ++i) {
      const Section& section = plan_.sections[i];
      if (plan_.find(section.kind, section.variant) != &section) {
        fault(fmt::format("{} is there twice", section_text(plan_, static_cast<int>(i))),
              -1,
              static_cast<int>(i));
      }
    }
    for (const std::int32_t variant : plan_.variant_of_iteration) {
      if (plan_.find(SectionKind::kStep, variant) == nullptr) {
        fault(fmt::format("step variant {} has no section", variant));
      }
    }
    if (plan_.variant_of_iteration.empty() &&
        std::any_of(plan_.sections.begin(), plan_.sections.end(), [](const Section& section) {
          return section.kind == SectionKind::kStep;
        })) {
      fault("variant_of_iteration names no step");
    }
  }

  void check_scalars() {
    for (std::size_t i = 0; i < plan_.scalars.size(); ++i) {
      if (plan_.scalars[i].denominator == 0) {
        fault(fmt::format("scalar {} divides by zero", i));
      }
    }
  }

  void check_buffers(int class_index) {
    const std::vector<Buffer>& buffers = context_.buffers(class_index);
    for (std::size_t id = 0; id < buffers.size(); ++id) {
      const std::string what = buffer_fault(buffers, id);
      if (!what.empty()) {
        fault(fmt::format("class {} buffer {}: {}", class_index, id, what), class_index);
      }
    }
  }

  std::string buffer_fault(const std::vector<Buffer>& buffers, std::size_t id) const {
    const Buffer& buffer = buffers[id];
    if (!in_range(buffer.category, Category::kTemporary) ||
        !in_range(buffer.dtype, DType::kUint8) || !in_range(buffer.lifetime, Lifetime::kStep) ||
        !in_range(buffer.storage, Storage::kHost)) {
      return "an enumerator is out of range";
    }
    if (buffer.elements < 0 || !is_small(buffer.elements) || !is_small(buffer.alias_offset)) {
      return fmt::format("has {} elements, alias offset {}", buffer.elements, buffer.alias_offset);
    }
    if (buffer.layout != kNoLayout && buffer.layout >= plan_.layouts.size()) {
      return fmt::format("layout {} does not exist", buffer.layout);
    }
    if (plan_.graph != nullptr &&
        buffer.parameter >= static_cast<std::int32_t>(plan_.graph->parameters.size())) {
      return fmt::format("parameter {} does not exist", buffer.parameter);
    }
    return buffer.alias_of == kNoBuffer ? std::string() : alias_fault(buffers, buffer);
  }

  static std::string alias_fault(const std::vector<Buffer>& buffers, const Buffer& buffer) {
    if (buffer.alias_of >= buffers.size()) {
      return fmt::format("is an alias of buffer {}, which does not exist", buffer.alias_of);
    }
    const Buffer& lender = buffers[buffer.alias_of];
    if (lender.alias_of != kNoBuffer) {
      return fmt::format("is an alias of buffer {}, which is an alias itself", buffer.alias_of);
    }
    const std::int64_t begin = buffer.alias_offset * size_of(buffer.dtype);
    const std::int64_t end = begin + buffer.elements * size_of(buffer.dtype);
    if (begin < 0 || end > lender.bytes()) {
      return fmt::format("is an alias of bytes [{}, {}) of buffer {}, which has {}",
                         begin,
                         end,
                         buffer.alias_of,
                         lender.bytes());
    }
    return {};
  }

  const Plan& plan_;
  const CheckContext& context_;
  bool good_ = true;
};

}  // namespace

bool check_tables(const CheckContext& context) {
  return TableCheck(context).run();
}

}  // namespace lockstep
