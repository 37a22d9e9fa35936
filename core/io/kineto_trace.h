// Kineto trace: a rank's steps in the form of PyTorch's profiler, so that what reads its traces
// (Holistic Trace Analysis, TensorBoard, Perfetto) reads a simulation or a real run.
//
// One file per rank. The host is a CPU process with ProfilerStep#N, launches and the records of
// collectives; the device is a GPU process with a stream per lane of core/io/export_spans.h, on it
// kernels, copies and messages under NCCL's names, with the argument keys of PyTorch. As in a real
// trace, a communication kernel runs from when its rank arrived, waiting included. A launch lasts
// from what the host did before to when it was issued. Times count from the trace's clock 0.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/io/files.h"
#include "core/plan.h"
#include "core/stop_check.h"
#include "core/trace.h"

namespace lockstep {

struct KinetoOptions {
  std::vector<int> ranks = {};  ///< empty: the first rank of every track of the first step
  std::string device = "device";
  std::int64_t device_bytes = 0;
  int devices_per_node = 8;
  StopCheck stop_check = {};  ///< of a folder: called before every rank
};

/// Errors as of write_chrome_trace().
void write_kineto_trace(const TextSink& text,
                        const Plan& plan,
                        const Trace& trace,
                        int rank,
                        const KinetoOptions& options = {});

/// "rank-3.pt.trace.json.gz"
std::string kineto_file_name(int rank);

/// Makes the folder, and in it a packed file per rank, each whole or not there; gives their number.
/// NotSupportedError when one cannot be written.
int write_kineto_folder(const std::filesystem::path& folder,
                        const Plan& plan,
                        const Trace& trace,
                        const KinetoOptions& options = {});

}  // namespace lockstep
