// Checks that an installed package is unchanged: `ath version --verify`.
//
// A package (tools/package) has a list of its files with their checksums,
// lib/athanor/manifest.sha256 below its prefix. A program in a build folder has none.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace athanor {

struct PackageCheck {
  std::string manifest;              // its path
  size_t files = 0;                  // that the package has
  std::vector<std::string> missing;  // paths below the prefix
  std::vector<std::string> changed;
};

// kNotFound if the program was not installed from a package.
Result<PackageCheck> CheckPackage(const std::string& program);

}  // namespace athanor
