// A job's source from the archive that a client put into the object store.
#pragma once

#include <string>

#include "base/result.h"
#include "job/object_uri.h"
#include "job/spec.h"
#include "record/objects/blob_store.h"
#include "record/objects/object_store.h"

namespace athanor::sagemaker {

struct UnpackedSource {
  SourceSpec source;
  bool has_requirements = false;
  bool has_program = false;
};

// Unpacks the tar.gz below `scratch` (removed again) and stores its files as a bundle; every
// file counts, no ignore rule is applied. Blocks; any thread.
// kNotFound: no such object; kInvalid, kCorrupt: see base/io/archive.h.
Result<UnpackedSource> UnpackSource(ObjectStore& objects, const BlobStore& blobs,
                                    const ObjectUri& archive, const std::string& program,
                                    const std::string& scratch);

}  // namespace athanor::sagemaker
