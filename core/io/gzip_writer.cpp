#include "core/io/gzip_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <zlib.h>

#include "core/check.h"

namespace lockstep {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib.h: 16 more for a gzip header
constexpr int kMemoryLevel = 8;
constexpr std::size_t kOutput = std::size_t{1} << 16;
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace

struct GzipWriter::State {
  z_stream stream{};
  std::vector<char> output = std::vector<char>(kOutput);
};

GzipWriter::GzipWriter(TextSink packed)
    : packed_(std::move(packed)), state_(std::make_unique<State>()) {
  const int code = deflateInit2(&state_->stream,
                                Z_DEFAULT_COMPRESSION,
                                Z_DEFLATED,
                                kGzipWindow,
                                kMemoryLevel,
                                Z_DEFAULT_STRATEGY);
  LOCKSTEP_CHECK(code == Z_OK, "zlib cannot begin");
}

GzipWriter::~GzipWriter() {
  deflateEnd(&state_->stream);
}

void GzipWriter::write(std::string_view text) {
  while (!text.empty()) {
    const std::size_t size = std::min(text.size(), kMostAtOnce);
    pack(text.substr(0, size), Z_NO_FLUSH);
    text.remove_prefix(size);
  }
}

void GzipWriter::finish() {
  pack({}, Z_FINISH);
}

void GzipWriter::pack(std::string_view text, int flush) {
  z_stream& stream = state_->stream;
  // zlib does not write through next_in; its type is older than const.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  do {
    stream.next_out = reinterpret_cast<Bytef*>(state_->output.data());
    stream.avail_out = static_cast<uInt>(kOutput);
    deflate(&stream, flush);
    packed_({state_->output.data(), kOutput - stream.avail_out});
  } while (stream.avail_out == 0);
}

}  // namespace lockstep
