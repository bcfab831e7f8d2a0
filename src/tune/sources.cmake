# What the room and the Python modules are made of, and how they are compiled. Read by CMake here and
# in python/, and by python/native_modules.py, so it only has plain `set(NAME words)`.
#
# The same bytes everywhere: no contraction, no shortcuts. Always optimised, also in a debug build,
# where a fit would take twenty times as long.
set(tune_sources
  gp/acquisition.cc gp/bayes.cc gp/factor.cc gp/gp.cc history.cc journal.cc journal_file.cc lanes.cc
  lanes_avx2.cc gp/lbfgs.cc math.cc output.cc random.cc sampling.cc search.cc session.cc sobol.cc
  space.cc space_json.cc stdio.cc stopping.cc strategy.cc tpe.cc)
set(tune_options -O3 -ffp-contract=off -fno-math-errno -Wno-psabi)
set(tune_avx2_options -mavx2 -mno-fma)

# What the Python modules need of base: athanor.tune, and the writer of metrics.
set(tune_base_sources io/crc32c.cc text/format.cc text/json.cc result.cc text/text.cc text/unicode.cc)
set(core_base_sources io/crc32c.cc)
