# Writes the text file INPUT as the source OUTPUT with one constant, NAME.
file(READ "${INPUT}" text)
file(WRITE "${OUTPUT}"
     "#include <string_view>\n\nnamespace sandboxd::embedded {\nextern const std::string_view ${NAME};\n"
     "const std::string_view ${NAME} = R\"__embedded__(${text})__embedded__\";\n}\n")
