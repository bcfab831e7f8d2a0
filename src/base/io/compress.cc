#include "base/io/compress.h"

#include <zlib.h>
#include <zstd.h>

#include <memory>

namespace athanor {
namespace {

constexpr int kGzipWindow = 15 + 16;  // 16: with gzip's header and checksum, not zlib's
constexpr int kGzipMemory = 8;        // zlib's usual

}  // namespace

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  // These fail only if memory runs out, and then nothing works.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kGzipMemory,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  const auto size = stream.total_out;
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::bad_alloc();
  out.resize(size);
  return out;
}

std::string Zstd(std::string_view bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();
  out.resize(size);
  return out;
}

}  // namespace athanor
