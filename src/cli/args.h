// The command line: parses argv and calls one verb.
#pragma once

namespace athanor {

int Main(int argc, char** argv);

}  // namespace athanor
