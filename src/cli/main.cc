#include "cli/args.h"

int main(int argc, char** argv) { return athanor::Main(argc, argv); }
