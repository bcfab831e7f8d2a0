// The native API and the agents' routes, one row each: from this table come the router's patterns,
// the permissions, the limits of bodies, the thread that a handler is called on, and the OpenAPI
// document. A handler is given to a row by name: Native("jobs.show", ...) in doors.h.
#pragma once

#include <span>
#include <string_view>

#include "door/access.h"

namespace athanor {

enum class BodyLimit {
  kUsual,   // what a request may have if nothing else is said
  kSpec,    // 4 MiB: a job, a list
  kReport,  // 64 MiB: logs and points
  kBlob,    // 64 GiB, received into a file
};

// Where a handler is called. What needs the live records of jobs begins on the loop's thread, and
// goes on elsewhere by itself (queries.h).
enum class Thread {
  kLoop,
  kReader,  // it may wait for the store
  kDisk,    // it takes seconds
};

struct NativeRoute {
  const char* name;  // unique: "jobs.show"
  const char* method;
  const char* path;  // as of the Router: "/api/v1/jobs/{job}"; "{path...}" takes the rest
  Access need;
  BodyLimit limit = BodyLimit::kUsual;
  Thread thread = Thread::kLoop;
  // For the document; no summary: it is not in it.
  const char* summary = "";
  const char* query = "";  // "limit:integer tail:string"; empty: none
  const char* body = "";   // schema of the request, "bytes", or empty
  const char* reply = "";  // schema of a 2xx reply, "bytes", "events", "ndjson", "html" or "text"
  int status = 200;
  bool file_names = false;  // see Route
};

std::span<const NativeRoute> NativeRoutes();
const NativeRoute* FindNativeRoute(std::string_view name);  // null: it is another door's

}  // namespace athanor
