// MemoryStackText: the memory of one rank drawn in a terminal, the text twin of the memory view.
//
//   41.28 GiB |        AAAA
//             |  AAAAAAAAAAAAA          A letter for each category, stacked, the highest moment of
//             |GGGGGGGGGGGGGGGGGG       every column; then what is held at a moment, largest first.
//             |PPPPPPPPPPPPPPPPPP
//              |0 ms       |5
#pragma once

#include <optional>
#include <string>

#include "visualizer/models/memory_stack.h"
#include "visualizer/models/text_parts.h"

namespace lockstep::view {

/// The letter of a category.
char letter_of(Category category);

/// `at`: the moment whose allocations are listed; nothing: the peak.
std::string memory_stack_text(const MemoryStack& stack,
                              std::optional<Nanoseconds> at = {},
                              const TextOptions& options = {});

}  // namespace lockstep::view
