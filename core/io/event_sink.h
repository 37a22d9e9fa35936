// EventSink: the list of events of a trace in JSON, one a line, written in pieces of 64 KiB, so
// that memory does not grow with the trace.
#pragma once

#include <string>
#include <string_view>

#include "core/io/files.h"

namespace lockstep {

class EventSink {
 public:
  /// `sink` must outlive it.
  explicit EventSink(const TextSink& sink) : sink_(sink) {}

  /// What comes before the first event, with the opening bracket.
  void begin(std::string_view head) { buffer_ = head; }
  void event(std::string_view json) {
    buffer_ += first_ ? "\n" : ",\n";
    buffer_ += json;
    first_ = false;
    if (buffer_.size() >= kFlushAt) {
      flush();
    }
  }
  void end(std::string_view tail) {
    buffer_ += tail;
    flush();
  }

 private:
  static constexpr std::size_t kFlushAt = std::size_t{1} << 16;

  void flush() {
    sink_(buffer_);
    buffer_.clear();
  }

  const TextSink& sink_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace lockstep
