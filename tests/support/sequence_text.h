// A program as the sequence that textbooks write: what is computed, what travels, who waits.
//
//   F(B0) B(B1)        forward, backward of a block (R: recompute; I, W: halves of a backward)
//   AG(B1)[300]        all-gather of block 1's parameters, 300 elements from each rank
//   RS AR BC0 RD0 GA0 SC0 A2A BAR   other collectives; a digit is the root
//   AR(norm)[1]@pp:max            group (unless it is dp) and reduction (unless sum)
//   |AG(B1)            the compute stream waits for it here (all wait for all at the end)
//   SEND_F3 RECV_B0    messages between stages, by micro-batch; a RECV where it is read first
//   squares coefficient clip unscale step scaler     what follows the gradients
//
// Names in brackets: B<k> block, embed, head; R parameters outside blocks; 0, 1, ... buckets in
// order of launch; a parameter; a module; a number (norm, overflow, loss, tokens); else the dtype.
// Equal computations in a row are one. Control operations are listed apart.
#pragma once

#include <string>
#include <vector>

#include "core/plan.h"

namespace lockstep::test {

struct SequenceOptions {
  enum class Compute : unsigned char { kSegments, kModules, kMicrobatches };
  Compute compute = Compute::kSegments;
  enum class Waits : unsigned char {
    kNone,
    kData,  ///< for what is read
    kAll,   ///< and for the end of what still reads
  };
  Waits waits = Waits::kAll;
  bool memory = false;   ///< reshard(x) and drop: gathered parameters, whole gradients are freed
  bool scaling = false;  ///< scale(1/N), add, copy between backward and optimizer
};

struct Sequence {
  std::vector<std::string> steps;
  std::vector<std::string> control;
};

Sequence sequence_of(const Plan& plan,
                     const Section& section,
                     int class_index,
                     const SequenceOptions& options = {});

/// Cases of a golden file: "== name", then words separated by blanks or ";" on any number of lines;
/// after the word "control:" those of control operations.
struct SequenceCase {
  std::string name;
  Sequence sequence;
};
std::vector<SequenceCase> read_sequences(const std::string& golden);

}  // namespace lockstep::test
