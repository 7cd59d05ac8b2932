# sandboxd_embed(TARGET NAME FILE): the file becomes `extern const std::string_view sandboxd::embedded::NAME` of the
# target.
function(sandboxd_embed target name file)
    set(output "${CMAKE_BINARY_DIR}/generated/embedded_${name}.cpp")
    add_custom_command(
        OUTPUT "${output}"
        COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_SOURCE_DIR}/${file} -DOUTPUT=${output} -DNAME=${name} -P
                ${CMAKE_SOURCE_DIR}/cmake/write_embedded.cmake
        DEPENDS "${CMAKE_SOURCE_DIR}/${file}" "${CMAKE_SOURCE_DIR}/cmake/write_embedded.cmake"
        COMMENT "Embedding ${file}"
        VERBATIM)
    target_sources(${target} PRIVATE "${output}")
endfunction()
