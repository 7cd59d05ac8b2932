# A room is a folder of src/ with a target, a namespace and a test folder of the same name.
#
#   sandboxd_room(NAME [PUBLIC_API] [ROOMS room...] [LIBS target...])
#
# Sources include each other as "room/file.hpp". Each room publishes its headers through a directory of its own that
# holds nothing but a link to it, so a room that is not listed can't be included: the arrows of docs/architecture.md
# are enforced by the compiler.
function(sandboxd_room name)
    cmake_parse_arguments(room "PUBLIC_API" "" "ROOMS;LIBS" ${ARGN})
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/${name}/*.cpp")
    list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
    set(headers "${CMAKE_BINARY_DIR}/rooms/${name}")
    file(MAKE_DIRECTORY "${headers}")
    file(CREATE_LINK "${CMAKE_SOURCE_DIR}/src/${name}" "${headers}/${name}" SYMBOLIC)
    if(sources)
        add_library(room_${name} STATIC ${sources})
        set(scope PUBLIC)
    else()
        add_library(room_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(room_${name} ${scope} "${headers}")
    target_link_libraries(room_${name} ${scope} sandboxd_options ${room_LIBS})
    if(room_PUBLIC_API)
        target_link_libraries(room_${name} ${scope} sandboxd_public)
    endif()
    foreach(below IN LISTS room_ROOMS)
        target_link_libraries(room_${name} ${scope} room_${below})
    endforeach()
endfunction()

# sandboxd_program(NAME MAIN file ROOMS room...): an executable, left in the top of the build folder.
function(sandboxd_program name)
    cmake_parse_arguments(program "" "MAIN" "ROOMS" ${ARGN})
    if(NOT EXISTS "${CMAKE_SOURCE_DIR}/${program_MAIN}")
        return()
    endif()
    add_executable(${name} "${program_MAIN}")
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
    target_link_libraries(${name} PRIVATE sandboxd_options)
    foreach(below IN LISTS program_ROOMS)
        target_link_libraries(${name} PRIVATE room_${below})
    endforeach()
endfunction()
