// A number as the bytes of an element type, and back.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace lockstep::exec {

/// Rounds to the nearest of the type (integers: towards zero). `to` has size_of(dtype) bytes and
/// needs no alignment.
void write_value(DType dtype, std::byte* to, double value);
double read_value(DType dtype, const std::byte* from);

}  // namespace lockstep::exec
