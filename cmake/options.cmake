# Warnings, hardening, sanitizers, linker and cache: one interface target that every other target links.
add_library(sandboxd_options INTERFACE)
target_compile_options(sandboxd_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
target_compile_definitions(
    sandboxd_options
    INTERFACE BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_BEAST_SEPARATE_COMPILATION
              BOOST_ASIO_DISABLE_BOOST_COROUTINE _GNU_SOURCE)

# Said here for all, linked or not: a precompiled header is only good for the same definitions.
target_compile_definitions(
    sandboxd_options
    INTERFACE BOOST_CONTAINER_DYN_LINK BOOST_CONTAINER_NO_LIB BOOST_JSON_DYN_LINK BOOST_JSON_NO_LIB BOOST_URL_DYN_LINK
              BOOST_URL_NO_LIB SPDLOG_COMPILED_LIB SPDLOG_FMT_EXTERNAL SPDLOG_SHARED_LIB FMT_SHARED)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Without it the header holds its time of building and no cache entry is ever found again.
    target_compile_options(sandboxd_options INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

find_program(SANDBOXD_LLD NAMES ld.lld-19 ld.lld)
if(SANDBOXD_LLD)
    target_link_options(sandboxd_options INTERFACE --ld-path=${SANDBOXD_LLD})
endif()

find_program(SANDBOXD_CCACHE ccache)
if(SANDBOXD_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1
        "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" ${SANDBOXD_CCACHE})
endif()

if(SANDBOXD_SANITIZE)
    target_compile_options(sandboxd_options INTERFACE -fsanitize=${SANDBOXD_SANITIZE} -fno-omit-frame-pointer
                                                      -fno-sanitize-recover=all)
    target_link_options(sandboxd_options INTERFACE -fsanitize=${SANDBOXD_SANITIZE})
endif()

# In the tests as in what is shipped: an index out of range ends the program.
target_compile_definitions(sandboxd_options INTERFACE _GLIBCXX_ASSERTIONS)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
    if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
        set(branches -mbranch-protection=standard)
    else()
        set(branches -fcf-protection=full)
    endif()
    target_compile_options(sandboxd_options INTERFACE -g1 -fstack-protector-strong -fstack-clash-protection
                                                      ${branches} -fPIE)
    target_compile_definitions(sandboxd_options INTERFACE _FORTIFY_SOURCE=2)
    target_link_options(sandboxd_options INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
endif()
