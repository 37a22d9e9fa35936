# Only the planner gives strategies a meaning: what prices, runs and computes plans must not name
# one in its code (comments may). A grep, so that a shortcut is seen at once.
#
#   cmake -D ROOT=<repository>  -P tests/strategy_names_test.cmake   checks a tree, prints file:line
#   cmake -D SELF_TEST=<folder> -P tests/strategy_names_test.cmake   checks the check
cmake_minimum_required(VERSION 3.22)

set(folders simulator executor kernels)
# What makes scenarios, and reads or writes their words, but interprets no plan.
set(makes_scenarios
  simulator/row_scenario.cpp        # rows of published measurements -> scenarios
  simulator/search.cpp              # which scenarios to try
  simulator/search.h
  simulator/validate_training.cpp   # words of rows, for their table
)
set(names
  "ddp" "fsdp" "hsdp" "zero[_-]?[123]" "zero_?redundancy" "megatron" "deepspeed" "dataparallel"
  "data_?kind" "zero_?flavour" "reshard" "no_?sync" "bucket_?view" "gpipe" "1f1b" "interleaved"
  "looped_?bfs" "zb_?h1" "zb_?v[^a-z]" "schedule_?kind" "sequence_?parallel")
list(JOIN names "|" pattern)

# Prints every line of code under `root` that names a strategy; sets `out` to their number and
# files_${out} to the files read.
function(check_tree root out)
  set(bad 0)
  set(count 0)
  foreach(folder IN LISTS folders)
    file(GLOB_RECURSE files RELATIVE "${root}"
         "${root}/${folder}/*.h" "${root}/${folder}/*.cpp" "${root}/${folder}/*.cu"
         "${root}/${folder}/*.cuh")
    foreach(file IN LISTS files)
      math(EXPR count "${count} + 1")
      if(file IN_LIST makes_scenarios)
        continue()
      endif()
      file(READ "${root}/${file}" content)
      # Brackets and semicolons mean something to lists of lines.
      string(REGEX REPLACE "[][;]" " " content "${content}")
      string(REGEX REPLACE "//[^\n]*" "" content "${content}")
      string(TOLOWER "${content}" content)
      if(NOT content MATCHES "${pattern}")
        continue()
      endif()
      string(REPLACE "\n" ";" lines "${content}")
      set(number 0)
      foreach(line IN LISTS lines)
        math(EXPR number "${number} + 1")
        if(line MATCHES "${pattern}")
          message("${file}:${number}: names a strategy: ${CMAKE_MATCH_0}")
          math(EXPR bad "${bad} + 1")
        endif()
      endforeach()
    endforeach()
  endforeach()
  set(${out} ${bad} PARENT_SCOPE)
  set(files_${out} ${count} PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/self_test.cmake")

# One file with one line of code, its third.
macro(expect verdict file line)
  expect_of_check(${verdict} ${file} "// 1F1B, FSDP\n\n${line}\n" "${file}:3: names a strategy")
endmacro()

if(DEFINED SELF_TEST)
  expect(refused executor/job.cpp "  if (s.strategy.data.kind == DataKind::kFsdp) {")
  expect(refused simulator/engine.cpp "bool is_1f1b = true[0];")
  expect(refused kernels/cpu/gelu.cpp "const char* name = \"zero2\";")
  expect(refused executor/works/loss.cpp "int megatron_padding = 0;")
  expect(allowed executor/works/loss.cpp "int zeros = 0;  // as Megatron-LM does")
  expect(allowed simulator/search.cpp "kinds = {DataKind::kDdp};")
  return()
endif()

check_tree("${ROOT}" violations)
if(files_violations EQUAL 0)
  message(FATAL_ERROR "no source file under ${ROOT}: nothing was checked")
endif()
if(violations)
  message(FATAL_ERROR "${violations} line(s) outside the planner name a strategy")
endif()
message("${files_violations} files checked")
