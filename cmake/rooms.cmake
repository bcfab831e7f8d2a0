# One static library and one test binary per room; sources are listed, not globbed.
#
#   athanor_room(base SOURCES a.cc b.cc LIBS third_crypto)
#   athanor_room_test(base SOURCES a_test.cc b_test.cc)
#   athanor_fuzz(job_file SOURCES job_file_fuzz.cc LIBS athanor_submit)
#
# With ATHANOR_UNITY the sources are compiled in batches (tools/unity_batches). Whoever builds calls
# `tools/unity_batches --refresh BUILD/unity` first, because a change of a source can change the batches.
set(unity_stamp ${CMAKE_BINARY_DIR}/unity/stamp)
if(ATHANOR_UNITY AND NOT EXISTS ${unity_stamp})
  file(WRITE ${unity_stamp} "")
endif()

# Sets `out` to what is compiled for these sources: batches of them, and what is no C++ or, named in
# ALONE, has options of its own.
function(athanor_batches out name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE" ${ARGN})
  if(NOT ATHANOR_UNITY)
    set(${out} ${ARG_SOURCES} PARENT_SCOPE)
    return()
  endif()
  set(batched ${ARG_SOURCES})
  list(FILTER batched INCLUDE REGEX "\\.cc$")
  if(ARG_ALONE)
    list(REMOVE_ITEM batched ${ARG_ALONE})
  endif()
  set(rest ${ARG_SOURCES})
  list(REMOVE_ITEM rest ${batched})
  execute_process(
    COMMAND ${CMAKE_SOURCE_DIR}/tools/unity_batches --out ${CMAKE_BINARY_DIR}/unity/${name}
      --root ${CMAKE_SOURCE_DIR}/src ${batched}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE batches COMMAND_ERROR_IS_FATAL ANY)
  string(STRIP "${batches}" batches)
  string(REPLACE "\n" ";" batches "${batches}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${unity_stamp})
  set(${out} ${batches} ${rest} PARENT_SCOPE)
endfunction()

function(athanor_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ALONE;LIBS" ${ARGN})
  athanor_batches(sources ${name} SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE})
  add_library(athanor_${name} STATIC ${sources})
  target_include_directories(athanor_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(athanor_${name} PUBLIC ${ARG_LIBS})
endfunction()

function(athanor_room_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT ATHANOR_TESTS)
    return()
  endif()
  find_package(GTest REQUIRED)
  athanor_batches(sources ${name}_test SOURCES ${ARG_SOURCES})
  add_executable(${name}_test ${sources})
  target_link_libraries(${name}_test PRIVATE athanor_${name} ${ARG_LIBS} GTest::gtest GTest::gtest_main)
  set_target_properties(${name}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # Each case is a test of ctest's, listed when ctest runs: `ctest --preset release -R Queue.Gives`.
  include(GoogleTest)
  gtest_discover_tests(${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} DISCOVERY_MODE PRE_TEST
    PROPERTIES LABELS ${name} TIMEOUT 1800)
endfunction()

function(athanor_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  if(NOT ATHANOR_FUZZ)
    return()
  endif()
  add_executable(fuzz_${name} ${ARG_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_LIBS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(fuzz_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
endfunction()
