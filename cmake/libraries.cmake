# Third-party libraries, all from Debian 12 (docs/dependencies.md). Linked
# statically where Debian ships an archive: each exec of a program that loads
# OpenSSL and friends dynamically costs 6 ms, and every job execs an agent.
find_package(Threads REQUIRED)

function(athanor_static_library name)
  cmake_parse_arguments(ARG "" "" "NEEDS" ${ARGN})
  find_library(lib_${name} NAMES lib${name}.a REQUIRED)
  add_library(third_${name} INTERFACE)
  target_link_libraries(third_${name} INTERFACE ${lib_${name}} ${ARG_NEEDS})
endfunction()

athanor_static_library(z)
athanor_static_library(zstd)
athanor_static_library(crypto NEEDS Threads::Threads ${CMAKE_DL_LIBS})
athanor_static_library(ssl NEEDS third_crypto)
athanor_static_library(sqlite3 NEEDS Threads::Threads ${CMAKE_DL_LIBS} m)
athanor_static_library(re2 NEEDS Threads::Threads)
athanor_static_library(yaml-cpp)
athanor_static_library(archive NEEDS third_z third_zstd third_crypto)
