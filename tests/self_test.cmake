# Proves of a check (a CMake script that reads the tree under ROOT) that it reports what it should.

# expect_of_check(refused|allowed FILE CONTENT REPORT): a tree with this one file, made under
# SELF_TEST; fails unless the check that includes this file says what is expected, with REPORT in
# its words.
function(expect_of_check verdict file content report)
  file(REMOVE_RECURSE "${SELF_TEST}")
  file(WRITE "${SELF_TEST}/${file}" "${content}")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -D "ROOT=${SELF_TEST}" -P "${CMAKE_CURRENT_LIST_FILE}"
    RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(FIND "${output}" "${report}" place)
  if(verdict STREQUAL "refused" AND (result EQUAL 0 OR place EQUAL -1))
    message(FATAL_ERROR "\"${report}\" was not said of ${file}:\n${content}\n${output}")
  elseif(verdict STREQUAL "allowed" AND NOT result EQUAL 0)
    message(FATAL_ERROR "${file} is legal but was reported:\n${content}\n${output}")
  endif()
endfunction()
