// Any bytes as an event file: read at once and in pieces they give the same records and the same
// damage; whatever a record contains, the plug-ins' readers accept it or refuse it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "eventfile/event.h"
#include "eventfile/event_reader.h"
#include "eventfile/plugins.h"
#include "eventfile/tensor.h"
#include "eventfile/tfrecord.h"

namespace {

using namespace athanor;

void Check(bool good) {
  if (!good) std::abort();
}

void ReadAll(std::string_view payload) {
  EventView event;
  if (!ReadEvent(payload, event) || event.kind != EventView::Kind::kSummary) return;
  TagKinds kinds;
  SummaryValue value;
  while (TakeValue(event.body, value)) {
    (void)kinds.KindOf(value);
    (void)ScalarOf(value);
    (void)ReadTensor(value.bytes).has_value();
    (void)ReadHistogram(value).has_value();
    (void)ReadImage(value).has_value();
    (void)ReadAudio(value).has_value();
    (void)ReadText(value).has_value();
    (void)ReadPrCurve(value).has_value();
    (void)ReadHParams(value).has_value();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto cut = static_cast<uint8_t>(bytes[0]);
  const bool framed = bytes[1] % 2 == 0;
  bytes.remove_prefix(2);
  std::string file;
  while (framed && !bytes.empty()) {
    const auto payload = bytes.substr(1, static_cast<uint8_t>(bytes[0]));
    AppendTfRecord(file, payload);
    bytes.remove_prefix(1 + payload.size());
  }
  if (!framed) file = bytes;

  const int fd = ::memfd_create("events", MFD_CLOEXEC);
  Check(fd >= 0);
  std::vector<std::pair<uint64_t, std::string>> grown;
  EventReader reader{UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0))};
  // As the file grows, piece by piece.
  for (size_t at = 0; at < file.size();) {
    const size_t n = std::min<size_t>(file.size() - at, 1 + cut);
    Check(::pwrite(fd, file.data() + at, n, static_cast<off_t>(at)) == static_cast<ssize_t>(n));
    at += n;
    Check(reader
              .Poll([&](uint64_t offset, std::string_view payload) {
                grown.emplace_back(offset, payload);
                ReadAll(payload);
              })
              .has_value());
  }
  std::vector<std::pair<uint64_t, std::string>> whole;
  EventReader again{UniqueFd(fd)};
  Check(again
            .Poll([&](uint64_t offset, std::string_view payload) {
              whole.emplace_back(offset, payload);
            })
            .has_value());
  Check(grown == whole);
  Check(reader.offset() == again.offset() && reader.tail() == again.tail());
  uint64_t seen = again.tail();
  for (const auto& damage : again.damage()) seen += damage.bytes;
  for (const auto& [offset, payload] : whole) seen += payload.size() + 16;
  Check(seen == file.size());
  return 0;
}
