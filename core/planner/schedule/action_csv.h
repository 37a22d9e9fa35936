// PyTorch's pipeline action CSV, read and written: the way a custom schedule gets in and out.
//
// One line per rank, one cell per action, an empty cell is idle (torch.distributed.pipelining,
// _dump_csv and _load_csv). A cell is [stage][kind][micro-batch]:
//   2F0  3B1  0I2  0W2                          compute ("compute_only")
//   1SEND_F0  2RECV_F0  2SEND_B0  1RECV_B0      messages ("compute_comms")
//   1UNSHARD  1RESHARD  1REDUCE_GRAD            whole stage, no micro-batch
//   (3F0;2B1)OVERLAP_F_B                        a forward and a backward together: read as the two
//                                               actions in this order
// Case counts. Idle cells carry no meaning in PyTorch (time follows from what waits for what), so
// they are dropped when reading and not written.
//
// A file that is read has to be a schedule that can run: every (stage, micro-batch) once forward
// and once backward (B, or I and later W), each stage on one rank, the same number of stages on
// every rank, messages, if there are any, for every border between ranks, and no dependency cycle.
#pragma once

#include <string>
#include <string_view>

#include "core/planner/schedule/schedule.h"

namespace lockstep {

/// One line per rank, "\n" at the end of each. read_action_csv gives the same schedule back.
std::string write_action_csv(const Schedule& schedule);

/// BadInputError on anything else than a schedule: "<source>:<row>:<cell>: <reason>", where rows
/// and cells count from 1 (the cell is the column of a spreadsheet, not of an editor).
Schedule read_action_csv(std::string_view text, std::string_view source = "actions.csv");

}  // namespace lockstep
