// The last eight bytes of each page of a store's SQLite file say whether the page is as it was
// written: a CRC-32C of the page's number and of all bytes before, and a mark. SQLite does not use
// these bytes (they are "reserved" in its header), so any SQLite can read the file. What another
// program writes to it counts as damage, because it has the old checksums.
//
// Pure functions. Any bytes are accepted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace athanor {

inline constexpr size_t kPageCheckBytes = 8;
inline constexpr size_t kPageHeaderBytes = 100;  // of the file, at its beginning
// In SQLite's header, where a program puts its name: "Athn" in files without checksums, "Athc" in
// files with them. Programs that do not know about checksums refuse the second, so they never write
// to such a file.
inline constexpr uint32_t kPlainApplication = 0x4174686e;
inline constexpr uint32_t kCheckedApplication = 0x41746863;

// `number` counts from 1. A page is at least 512 bytes.
void StampPage(std::span<char> page, uint32_t number);
bool PageFits(std::string_view page, uint32_t number);

struct PageFormat {
  bool checked = false;  // pages have sums
  size_t page_size = 0;
};
// By the first kPageHeaderBytes of a file. Either of two places says that there are checksums, so
// that damage to the header does not turn them off. A file that is not a database counts as one
// whose first page is damaged.
PageFormat FormatOfPages(std::string_view header);

}  // namespace athanor
