// Names for jobs without a name: two words, easy to say and to type.
#pragma once

#include <string>

#include "base/ids.h"

namespace athanor {

std::string FriendlyName(const Ulid& id);  // "brisk-heron"

}  // namespace athanor
