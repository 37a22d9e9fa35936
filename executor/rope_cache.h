// Rope cache: tables of cosines and sines, made once for each set of angles and shared by all ranks
// of the process.
#pragma once

#include "kernels/cpu/embedding.h"

namespace lockstep::exec {

/// The table, which lives as long as the process. From any thread.
template <typename T>
kernels::cpu::RopeTable<T> rope_table(const kernels::cpu::RopeAngles& angles);

}  // namespace lockstep::exec
