// What a file system can be told about a folder. Hints only: one that does not know them goes on as
// before.
#pragma once

#include <string>

namespace athanor {

// The folders in `dir` have nothing to do with each other. ext4 keeps what is made in one place close
// together, and on its way to a free inode looks at each that was freed there in the last minutes:
// beside a hundred attempts that came and went, the fifty files of the next one took ten times as long.
void SpreadSubfolders(const std::string& dir);

}  // namespace athanor
