# Some compilers miscompile coroutines: temporaries made by aggregate initialization in an expression that awaits are
# destroyed twice (GCC bug 107288 and its kin; g++ 12.2 corrupts memory silently). Compile and run a small program that
# notices, and refuse a compiler that fails it.
if(NOT DEFINED CACHE{SANDBOXD_CANARY_OK})
    try_run(
        canary_exit canary_compiled
        "${CMAKE_BINARY_DIR}/canary" "${CMAKE_SOURCE_DIR}/cmake/canary.cpp"
        CXX_STANDARD 20
        CXX_STANDARD_REQUIRED ON
        COMPILE_OUTPUT_VARIABLE canary_output)
    if(NOT canary_compiled)
        message(FATAL_ERROR "The coroutine canary does not compile with ${CMAKE_CXX_COMPILER}:\n${canary_output}")
    endif()
    if(NOT canary_exit EQUAL 0)
        message(
            FATAL_ERROR
                "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) miscompiles coroutines: "
                "temporaries in an expression with co_await are destroyed twice, which corrupts memory silently.\n"
                "Use clang 19 or later: scripts/setup installs it, the presets name it, or pass "
                "-DCMAKE_CXX_COMPILER=clang++-19.")
    endif()
    set(SANDBOXD_CANARY_OK TRUE CACHE INTERNAL "the compiler passed the coroutine canary")
endif()
