# Compiler cache, linker, warnings and sanitizers: everything that is about the
# build and not about a room.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_DEV "-O1 -g1")
set(CMAKE_C_FLAGS_DEV "-O1 -g1")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG -D_FORTIFY_SOURCE=2 -fstack-protector-strong")

find_program(CCACHE ccache)
if(CCACHE)
  # Paths relative to the clone, so that a second clone hits the same entries.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
      CCACHE_SLOPPINESS=time_macros ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)

find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_link_options(-static-libstdc++ -static-libgcc)

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers
  -Werror=switch-enum -Werror=return-type -Werror=unused-result)
if(ATHANOR_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes a .cc file that a batch includes for a header, which others might include too.
  add_compile_options(-Wno-subobject-linkage)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # What base/exec/mutex.h says about locks is checked.
  add_compile_options(-Wthread-safety -Werror=thread-safety)
  # Asio 1.74 looks for <experimental/coroutine> under clang; libstdc++ has the real one.
  add_compile_definitions(BOOST_ASIO_HAS_CO_AWAIT=1 BOOST_ASIO_HAS_STD_COROUTINE=1)
endif()

if(ATHANOR_SANITIZE)
  add_compile_options(-fsanitize=${ATHANOR_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${ATHANOR_SANITIZE})
endif()
if(ATHANOR_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
