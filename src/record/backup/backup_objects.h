// The object store's part of a backup. Used by backup.cc.
#pragma once

#include "base/result.h"
#include "record/layout.h"

namespace athanor {

class TreeCopy;

// Copies index and bytes so that the copy is a snapshot, while objects come and go: first the
// index, then what it names; if some of that was removed in the meantime, the index again.
// kUnavailable: objects change too quickly.
Status CopyObjects(const StoreLayout& from, const StoreLayout& to, TreeCopy& copy);

}  // namespace athanor
