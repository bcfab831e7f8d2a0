// From a Python traceback to a Cause, and the texts that all diagnoses share.
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
// The kernel's kill, or an allocation that was refused (`refused`: its message).
Cause OutOfMemory(const EndEvidence& evidence, std::string_view refused);

// "train.py:12 in load"; empty if there is no frame in the user's code.
std::string InnermostUserFrame(const std::vector<Frame>& frames, const std::string& code_dir);
bool SaysDiskFull(std::string_view text);
bool SaysNoMemory(std::string_view text);
// The kind of a sign with the program's message, and its hint with what the job requested.
Cause FromSign(const SignFound& sign, const std::string& words, const EndEvidence& evidence);
Cause MissingVariable(const std::string& name, const std::string& where);
// `where`: " (at train.py:3)", or empty.
Cause MissingProgram(std::string_view program, const std::string& where);
// A system library, "libGL.so.1", that neither Python nor a program found.
Cause MissingLibrary(std::string_view library, const std::string& where);
// `path` may be empty if the message names none.
Cause PermissionDenied(const std::string& words, std::string_view path);
// At most `max` bytes, complete characters, printable.
std::string Short(std::string_view text, size_t max = 300);

}  // namespace athanor
