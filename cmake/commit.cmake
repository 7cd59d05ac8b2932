# The commit that `sandboxd --version` shows, written to a source of its own at every build so that nothing else is
# compiled again when it changes.
add_custom_target(
    sandboxd_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUTPUT=${CMAKE_BINARY_DIR}/generated/commit.cpp
            -DVERSION=${PROJECT_VERSION} -P ${CMAKE_SOURCE_DIR}/cmake/write_commit.cmake
    BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/commit.cpp)
