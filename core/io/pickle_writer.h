// PickleWriter: Python objects as pickle protocol 2, only those that a memory snapshot is made of:
// dictionaries, lists, strings, whole numbers. Strings are written once and then referred to, so
// that equal ones are one object again. Reading back is Python's pickle.loads.
//
//     pickle.begin_dictionary();
//     pickle.text("size"); pickle.whole(512);
//     pickle.end_dictionary();
//     pickle.finish();
//
// Opcodes: Lib/pickletools.py of CPython.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core/io/files.h"

namespace lockstep {

class PickleWriter {
 public:
  /// `sink` must outlive it.
  explicit PickleWriter(const TextSink& sink) : sink_(sink) { bytes_ = "\x80\x02"; }

  void begin_dictionary() { bytes_ += "}("; }  // EMPTY_DICT MARK
  void end_dictionary() { add('u'); }          // SETITEMS: keys and values since the mark
  void begin_list() { bytes_ += "]("; }        // EMPTY_LIST MARK
  void end_list() { add('e'); }                // APPENDS
  void whole(std::int64_t value);
  /// UTF-8.
  void text(std::string_view value);
  void entry(std::string_view key, std::int64_t value) {
    text(key);
    whole(value);
  }
  void entry(std::string_view key, std::string_view value) {
    text(key);
    text(value);
  }
  void finish();

 private:
  void add(char opcode);
  void little_endian(std::uint64_t value, int count);

  const TextSink& sink_;
  std::string bytes_;
  std::unordered_map<std::string, std::uint32_t> memo_;
};

}  // namespace lockstep
