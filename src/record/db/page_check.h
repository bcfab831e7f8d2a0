// The last eight bytes of each page of a store's SQLite file say whether the page is as it was
// written: a CRC-32C of the page's number and of all bytes before, and a mark. SQLite leaves
// these bytes alone (they are "reserved" in its header), so any SQLite reads the file; what
// another program writes to it is taken for damage, as it has the old sums.
//
// Pure functions. Any bytes may be asked about.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace athanor {

inline constexpr size_t kPageCheckBytes = 8;
inline constexpr size_t kPageHeaderBytes = 100;  // of the file, at its beginning
// In SQLite's header, where a program puts its name: "Athn" in files without sums, "Athc" in
// those with. Programs that know of no sums refuse the second, so they never write to one.
inline constexpr uint32_t kPlainApplication = 0x4174686e;
inline constexpr uint32_t kCheckedApplication = 0x41746863;

// `number` counts from 1. A page is at least 512 bytes.
void StampPage(std::span<char> page, uint32_t number);
bool PageFits(std::string_view page, uint32_t number);

struct PageFormat {
  bool checked = false;  // pages have sums
  size_t page_size = 0;
};
// By the first kPageHeaderBytes of a file. Any of two places says that there are sums, so that
// damage to the header does not switch them off; a file that is no database counts as one whose
// first page is damaged.
PageFormat FormatOfPages(std::string_view header);

}  // namespace athanor
