# Writes a C++ source that holds a file's bytes:
#   cmake -D INPUT=file -D OUTPUT=file.cpp -D NAMESPACE=lockstep::ui -D NAME=kFontFile -P cmake/embed.cmake
file(READ "${INPUT}" bytes HEX)
string(LENGTH "${bytes}" digits)
math(EXPR size "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE "${OUTPUT}"
  "// Made by cmake/embed.cmake.\n#include <cstddef>\nnamespace ${NAMESPACE} {\n"
  "extern const unsigned char ${NAME}[];\nextern const std::size_t ${NAME}Size;\n"
  "const unsigned char ${NAME}[] = {\n${bytes}};\nconst std::size_t ${NAME}Size = ${size};\n}\n")
