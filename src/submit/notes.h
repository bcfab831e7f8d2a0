// What a person should know about a job that is accepted as it is: not wrong, but easily not meant.
// Pure; made anew whenever they are shown, so that they are true of the machine as it is now.
#pragma once

#include <string>
#include <vector>

#include "job/inventory.h"
#include "job/spec.h"

namespace athanor {

// "8 ranks share the 2 CPUs of this machine, so each of them is slower than alone".
std::vector<std::string> NotesAbout(const ResourceSpec& resources, const Inventory& inventory);

// "2 nodes", "4 processes", "2 nodes with 4 processes each"; empty for one rank.
std::string RanksText(const ResourceSpec& resources);

}  // namespace athanor
