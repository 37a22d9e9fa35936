// From the events of one file to ranks with ordered lanes, nested spans and arrows: the part of
// core/io/kineto_reader.h that reads no JSON.
#pragma once

#include <string_view>

#include "core/imported_trace.h"
#include "core/io/kineto_events.h"

namespace lockstep {

/// Appends the file's ranks, arrows and notes to `trace`; times become those of the clock that
/// `events.base` counts from.
void add_kineto_ranks(KinetoEvents events, std::string_view file, ImportedTrace& trace);

}  // namespace lockstep
