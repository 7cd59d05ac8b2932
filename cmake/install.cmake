# What `cmake --install` puts down: the programs, and the service as a library for other programs, found by
# find_package(sandboxd) and by pkg-config.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS sandboxd RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET sandboxd-agent)
    install(TARGETS sandboxd-agent RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/sandboxd)
endif()
install(DIRECTORY "${CMAKE_SOURCE_DIR}/include/sandboxd" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# Sanitizers are for the tests: whoever links the library would need them too.
if(SANDBOXD_SANITIZE)
    return()
endif()

# The rooms in one archive; the program inside the sandboxes stands alone.
get_property(rooms GLOBAL PROPERTY SANDBOXD_ROOMS)
list(REMOVE_ITEM rooms room_agent)
add_library(sandboxd_library STATIC)
foreach(room IN LISTS rooms)
    target_sources(sandboxd_library PRIVATE $<TARGET_OBJECTS:${room}>)
endforeach()
set_target_properties(sandboxd_library PROPERTIES OUTPUT_NAME sandboxd EXPORT_NAME sandboxd LINKER_LANGUAGE CXX
                                                  ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/library")
target_include_directories(sandboxd_library INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(sandboxd_library INTERFACE cxx_std_20)
# As the library itself is compiled: its own Asio is inside.
set(library_definitions BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_DISABLE_BOOST_COROUTINE
                        BOOST_BEAST_SEPARATE_COMPILATION)
target_compile_definitions(sandboxd_library INTERFACE ${library_definitions})
target_link_libraries(
    sandboxd_library
    INTERFACE Boost::headers Boost::json Boost::url OpenSSL::SSL OpenSSL::Crypto spdlog::spdlog SQLite::SQLite3
              PkgConfig::uchardet Threads::Threads)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/sandboxd)
install(TARGETS sandboxd_library EXPORT sandboxd_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT sandboxd_targets NAMESPACE sandboxd:: FILE sandboxd-targets.cmake DESTINATION ${package_dir})
configure_package_config_file("${CMAKE_SOURCE_DIR}/cmake/sandboxd-config.cmake.in"
                              "${CMAKE_BINARY_DIR}/generated/sandboxd-config.cmake" INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file("${CMAKE_BINARY_DIR}/generated/sandboxd-config-version.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_BINARY_DIR}/generated/sandboxd-config.cmake"
              "${CMAKE_BINARY_DIR}/generated/sandboxd-config-version.cmake" DESTINATION ${package_dir})

# Where the file was found says where the rest is, so that an installed tree can be moved.
string(REPLACE ";" " -D" pkgconfig_definitions "-D${library_definitions}")
file(RELATIVE_PATH pkgconfig_up "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" pkgconfig_up "${pkgconfig_up}")
configure_file("${CMAKE_SOURCE_DIR}/cmake/sandboxd.pc.in" "${CMAKE_BINARY_DIR}/generated/sandboxd.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/generated/sandboxd.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
