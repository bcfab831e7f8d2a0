#include "record/db/page_check.h"

#include <cstring>

#include "base/io/crc32c.h"

namespace athanor {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kPageSizeAt = 16;
constexpr size_t kReservedAt = 20;
constexpr size_t kApplicationAt = 68;
constexpr size_t kUsualPage = 4096;
constexpr uint32_t kMark = 0x31637441;  // "Atc1"

uint32_t SumOf(std::string_view bytes, uint32_t number) {
  char place[sizeof number];
  std::memcpy(place, &number, sizeof number);
  return Crc32c(bytes, Crc32c({place, sizeof place}));
}

uint32_t BigEndian(std::string_view bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

}  // namespace

void StampPage(std::span<char> page, uint32_t number) {
  const size_t end = page.size() - kPageCheckBytes;
  const uint32_t sum = SumOf({page.data(), end}, number);
  std::memcpy(page.data() + end, &sum, sizeof sum);
  std::memcpy(page.data() + end + sizeof sum, &kMark, sizeof kMark);
}

bool PageFits(std::string_view page, uint32_t number) {
  const size_t end = page.size() - kPageCheckBytes;
  uint32_t sum = 0;
  uint32_t mark = 0;
  std::memcpy(&sum, page.data() + end, sizeof sum);
  std::memcpy(&mark, page.data() + end + sizeof sum, sizeof mark);
  return mark == kMark && sum == SumOf(page.substr(0, end), number);
}

PageFormat FormatOfPages(std::string_view header) {
  PageFormat format{true, kUsualPage};
  if (header.size() < kPageHeaderBytes || header.substr(0, kMagic.size()) != kMagic) return format;
  const size_t size = BigEndian(header, kPageSizeAt, 2);
  if (size >= 512 && (size & (size - 1)) == 0) format.page_size = size;
  if (size == 1) format.page_size = 65536;
  format.checked = BigEndian(header, kReservedAt, 1) == kPageCheckBytes ||
                   BigEndian(header, kApplicationAt, 4) == kCheckedApplication;
  return format;
}

}  // namespace athanor
