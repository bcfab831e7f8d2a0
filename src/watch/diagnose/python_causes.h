// From a Python traceback to a Cause, and the words shared by all diagnoses.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/record.h"
#include "watch/diagnose/diagnose.h"
#include "watch/diagnose/signs.h"
#include "watch/diagnose/traceback.h"

namespace athanor {

Cause FromTraceback(const Traceback& traceback, const EndEvidence& evidence);
Cause FromCrash(const std::optional<CrashStack>& stack, const EndEvidence& evidence);
Cause MissingFile(std::string_view path, const std::string& where, const EndEvidence& evidence);
Cause DiskFull(std::string detail);
// The kernel's verdict, or an allocation that was refused (`refused`: its words).
Cause OutOfMemory(const EndEvidence& evidence, std::string_view refused);

// "train.py:12 in load"; empty when there is no frame of the user's.
std::string InnermostUserFrame(const std::vector<Frame>& frames, const std::string& code_dir);
bool SaysDiskFull(std::string_view text);
bool SaysNoMemory(std::string_view text);
// A sign's class with the program's words, and its hint with what the job asked for.
Cause FromSign(const SignFound& sign, const std::string& words, const EndEvidence& evidence);
Cause MissingVariable(const std::string& name, const std::string& where);
// `where`: " (at train.py:3)", or empty.
Cause MissingProgram(std::string_view program, const std::string& where);
// A system library, "libGL.so.1", that neither Python nor a program found.
Cause MissingLibrary(std::string_view library, const std::string& where);
// `path` may be empty when the words name none.
Cause PermissionDenied(const std::string& words, std::string_view path);
// At most `max` bytes, whole characters, printable.
std::string Short(std::string_view text, size_t max = 300);

}  // namespace athanor
