// GzipWriter: packs text piece by piece into a gzip stream. Equal text gives equal bytes: no time
// and no name is in the header.
//
//     GzipWriter gzip([&](std::string_view packed) { file.write(packed); });
//     gzip.write("...");
//     gzip.finish();
#pragma once

#include <memory>
#include <string_view>

#include "core/io/files.h"

namespace lockstep {

class GzipWriter {
 public:
  explicit GzipWriter(TextSink packed);
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;
  ~GzipWriter();
  void write(std::string_view text);
  void finish();

 private:
  struct State;
  void pack(std::string_view text, int flush);

  TextSink packed_;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
