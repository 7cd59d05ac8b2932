# Toolchain: arm64 programs made on another machine, by clang against a Debian 12 of that architecture in a folder
# (SANDBOXD_SYSROOT), which scripts/build makes. What has to be run meanwhile runs in qemu, if there is one.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER clang++-19)
set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SANDBOXD_SYSROOT SANDBOXD_EMULATOR)
set(CMAKE_SYSROOT "${SANDBOXD_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH "${SANDBOXD_SYSROOT}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${SANDBOXD_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${SANDBOXD_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${SANDBOXD_SYSROOT}/usr/share/pkgconfig")

find_program(SANDBOXD_EMULATOR NAMES qemu-aarch64-static qemu-aarch64)
if(SANDBOXD_EMULATOR)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${SANDBOXD_EMULATOR};-L;${SANDBOXD_SYSROOT}")
endif()
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=lld")
