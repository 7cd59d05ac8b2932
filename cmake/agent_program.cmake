# The program inside every sandbox: one static binary that needs nothing of the image, never built with sanitizers
# (they refuse static linking). Its sources are compiled a second time for that: the room's library, with the
# sanitizers, is what the tests link.
if(EXISTS "${CMAKE_SOURCE_DIR}/src/agent/main.cpp")
    file(GLOB agent_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/agent/*.cpp" "${CMAKE_SOURCE_DIR}/src/protocol/*.cpp")
    add_executable(sandboxd-agent ${agent_sources})
    set_target_properties(sandboxd-agent PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
    target_include_directories(sandboxd-agent PRIVATE "${CMAKE_BINARY_DIR}/rooms/agent"
                                                      "${CMAKE_BINARY_DIR}/rooms/protocol")
    target_compile_definitions(sandboxd-agent PRIVATE _GNU_SOURCE SANDBOXD_AGENT_PROGRAM _GLIBCXX_EXTERN_TEMPLATE=0)
    target_compile_options(sandboxd-agent PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Os
                                                  -ffunction-sections -fdata-sections -fno-rtti -fno-exceptions
                                                  -fstack-protector-strong)
    target_link_options(sandboxd-agent PRIVATE -static -s -Wl,--gc-sections)
    if(SANDBOXD_LLD)
        target_link_options(sandboxd-agent PRIVATE --ld-path=${SANDBOXD_LLD})
    endif()
endif()
