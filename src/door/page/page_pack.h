// The files of the page, as tools/build_web packed them and the assembler put them into this
// program: nothing is read from disk to show the page. A program built without the page has an
// empty pack.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace athanor {

struct PageFile {
  std::string_view bytes;
  std::string_view gzip;  // the same, packed; empty: not worth it
  std::string etag;       // of the bytes
};

class PagePack {
 public:
  // A line "athanor page 1", one "PATH BYTES GZIP-BYTES ETAG" per file, an empty line, and their
  // bytes in that order. Views of `pack`. kCorrupt: anything else. Empty: no files.
  static Result<PagePack> Parse(std::string_view pack);
  static const PagePack& Embedded();

  const PageFile* Find(std::string_view path) const;  // "index.html"; null: none
  bool empty() const { return files_.empty(); }

 private:
  std::map<std::string, PageFile, std::less<>> files_;
};

}  // namespace athanor
