// The object store's part of a backup. Used by backup.cc.
#pragma once

#include "base/result.h"
#include "record/layout.h"

namespace athanor {

class TreeCopy;

// Copies index and bytes so that the copy is one moment's state, while objects come and go:
// the index first, then what it names; if some of that was removed meanwhile, the index
// again. kUnavailable: objects change too quickly.
Status CopyObjects(const StoreLayout& from, const StoreLayout& to, TreeCopy& copy);

}  // namespace athanor
