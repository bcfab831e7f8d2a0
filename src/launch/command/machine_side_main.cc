// For tests only: `athanor agent --machine` without the rest of athanor. FOLDER PROGRAM.
#include <cstdio>
#include <iostream>
#include <iterator>

#include "launch/command/machine_side.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string request{std::istreambuf_iterator<char>(std::cin), {}};
  const auto answer = athanor::AnswerCall({argv[1], argv[2], {}}, request);
  std::fputs(answer.c_str(), stdout);
  return 0;
}
