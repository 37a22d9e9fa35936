// RankMemory: the buffers of one rank while its programs run: where each lies, and which streams
// may still be reading it. Aliases point into the buffer that lends them memory.
#pragma once

#include <vector>

#include "core/plan.h"
#include "executor/device.h"
#include "executor/host.h"

namespace lockstep::exec {

class RankMemory {
 public:
  RankMemory(const Plan& plan, int rank, Device& device);

  void allocate(std::uint32_t buffer);
  void free(std::uint32_t buffer);
  /// The buffer's memory may not be lent again before `event`.
  void used_until(std::uint32_t buffer, Event event);

  /// This rank's part of the view's buffer.
  Operand operand(const View& view) const;
  const Buffer& description(std::uint32_t buffer) const { return buffers_[buffer]; }
  Device& device() { return device_; }

 private:
  std::uint32_t lender(std::uint32_t buffer) const {
    return buffers_[buffer].alias_of == kNoBuffer ? buffer : buffers_[buffer].alias_of;
  }

  const std::vector<Buffer>& buffers_;
  std::array<std::int64_t, kViewAxisCount + 1> coordinate_{};  ///< by Axis; 0 on kNone
  Device& device_;
  std::vector<std::byte*> memory_;        ///< by buffer id
  std::vector<std::vector<Event>> uses_;  ///< by lender; one event per stream
};

}  // namespace lockstep::exec
