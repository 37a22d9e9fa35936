// Reads traces of PyTorch's profiler (Kineto) and other Chrome JSON: one file, one per rank, a
// folder of them, or one in which ranks are processes; plain or gzip.
//
//     ImportedTrace trace = import_kineto({"traces/"});
//     if (!trace.ranks[0].rank) ask_for_the_rank();
//
// A rank is what distributedInfo says, else what a process is called ("rank 3"), else the rank-N of
// the file's name, else unknown. Files are read event by event; memory is that of the spans. What
// is no trace is a BadInputError of one line, "file: byte N: what", N counting unpacked bytes. What
// can be put right (spans of negative length, an array without its last bracket) is, with a note.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/imported_trace.h"
#include "core/stop_check.h"

namespace lockstep {

/// Of a folder: its *.pt.trace.json and *.pt.trace.json.gz, or if there are none all its *.json and
/// *.json.gz. Two files of one rank are a BadInputError.
ImportedTrace import_kineto(const std::vector<std::filesystem::path>& paths,
                            const StopCheck& stop_check = {});

/// Of one text that is in memory already.
ImportedTrace import_kineto_text(std::string_view text, std::string_view name);

}  // namespace lockstep
