# What the room is made of and how it is compiled; also for the Python module, which compiles it
# anew with the few files of base it needs.
#
# The same bytes everywhere: no contraction, no shortcuts. Always optimised, also in a debug build,
# where a fit would take twenty times as long.
set(tune_sources
  acquisition.cc bayes.cc factor.cc gp.cc history.cc journal.cc journal_file.cc lanes.cc
  lanes_avx2.cc lbfgs.cc math.cc output.cc random.cc sampling.cc search.cc session.cc sobol.cc
  space.cc space_json.cc stdio.cc stopping.cc strategy.cc tpe.cc)
set(tune_options -O3 -ffp-contract=off -fno-math-errno -Wno-psabi)
set(tune_avx2_options -mavx2 -mno-fma)

set(tune_module_sources "")
foreach(source ${tune_sources})
  list(APPEND tune_module_sources ${CMAKE_SOURCE_DIR}/src/tune/${source})
endforeach()
foreach(source crc32c format json result text unicode)
  list(APPEND tune_module_sources ${CMAKE_SOURCE_DIR}/src/base/${source}.cc)
endforeach()
