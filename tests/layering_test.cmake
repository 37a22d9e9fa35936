# Who may include whom (STYLE.md, "Layers"). A façade without a check leaks, so this is one.
#
#   cmake -D ROOT=<repository>  -P tests/layering_test.cmake   checks a tree, prints file:line: reason
#   cmake -D SELF_TEST=<folder> -P tests/layering_test.cmake   checks the check on trees made there
cmake_minimum_required(VERSION 3.22)

# A file belongs to the first folder of this list that it lies in.
set(folders visualizer/models core kernels simulator executor visualizer lessons cli tests)
set(may_visualizer/models visualizer/models core)
set(may_core core)
set(may_kernels kernels)
set(may_simulator simulator core)
set(may_executor executor core kernels)
set(may_visualizer visualizer visualizer/models core simulator lessons)
set(may_lessons lessons core simulator)
set(may_cli cli core kernels simulator executor lessons visualizer/models)
set(may_tests ${folders})

# Pairs: a header (regex), the files that may include it (regex).
set(third_party
  "^nlohmann/"            "^(core/io|tests)/"
  "^zlib\\.h"              "^(core/io|tests)/"
  "^CLI/"                 "^cli/"
  "^catch2/"              "^tests/support/"
  "^benchmark/"           "^tests/benchmark/"
  "^nccl\\.h"             "^executor/communicator_nccl\\.cpp$"
  "^gloo/"                "^executor/communicator_gloo\\.cpp$"
  "^(cuda|cublas|curand)" "^(kernels/cuda/|executor/[a-z_]*cuda[a-z_]*\\.|executor/communicator_nccl\\.cpp$)"
  "^(oneapi/|dnnl)"       "^kernels/cpu/[a-z_]*dnnl[a-z_]*\\."
  "^Eigen/"               "^kernels/cpu/"
  "^(imgui|GLFW/)"        "^(visualizer/([^/]+$|ui/|app/|views/|shot/)|tests/visualizer/)"
  "^GLFW/"                "^(visualizer/window|tests/visualizer/shot/opengl_test)\\.cpp$"
  "^png\\.h"              "^(visualizer/shot/png|tests/visualizer/support/pictures)\\.cpp$"
  # core is pure data and arithmetic.
  "^(thread|mutex|atomic|future|condition_variable)$" "^(kernels|simulator|executor|visualizer|lessons|cli|tests)/"
)

# Sets `out` to the entry of `folders` that holds `file`, or to "".
function(folder_of file out)
  foreach(folder IN LISTS folders)
    string(FIND "${file}" "${folder}/" position)
    if(position EQUAL 0)
      set(${out} "${folder}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  set(${out} "" PARENT_SCOPE)
endfunction()

# Sets `out` to the reason why `file` may not have the include `header` (with its < or "), or to "".
function(reason_against file header out)
  set(${out} "" PARENT_SCOPE)
  folder_of("${file}" from)
  string(SUBSTRING "${header}" 0 1 bracket)
  string(SUBSTRING "${header}" 1 -1 name)
  folder_of("${name}" to)
  if(bracket STREQUAL "\"")
    if(to STREQUAL "")
      set(${out} "is not written from the root of the repository" PARENT_SCOPE)
    elseif(NOT to IN_LIST may_${from})
      set(${out} "${from}/ may not include ${to}/" PARENT_SCOPE)
    endif()
    return()
  endif()
  if(to)
    set(${out} "our own headers are included with quotes" PARENT_SCOPE)
    return()
  endif()
  set(pairs ${third_party})
  while(pairs)
    list(POP_FRONT pairs pattern allowed)
    if(name MATCHES "${pattern}" AND NOT file MATCHES "${allowed}")
      set(${out} "is for files that match ${allowed}" PARENT_SCOPE)
    endif()
  endwhile()
endfunction()

function(line_of path text out)
  file(READ "${path}" content)
  string(FIND "${content}" "${text}" position)
  string(SUBSTRING "${content}" 0 ${position} before)
  string(REGEX MATCHALL "\n" breaks "${before}")
  list(LENGTH breaks count)
  math(EXPR line "${count} + 1")
  set(${out} ${line} PARENT_SCOPE)
endfunction()

# Prints every violation under `root`; sets `out` to their number and files_${out} to the files read.
function(check_tree root out)
  set(bad 0)
  set(count 0)
  foreach(folder IN LISTS folders)
    foreach(ending h cpp cu cuh)
      file(GLOB_RECURSE files RELATIVE "${root}" "${root}/${folder}/*.${ending}")
      foreach(file IN LISTS files)
        math(EXPR count "${count} + 1")
        file(STRINGS "${root}/${file}" lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
        foreach(line IN LISTS lines)
          string(REGEX REPLACE "^[^<\"]*([<\"][^>\"]*).*" "\\1" header "${line}")
          reason_against("${file}" "${header}" reason)
          if(reason)
            line_of("${root}/${file}" "${line}" number)
            message("${file}:${number}: ${line}: ${reason}")
            math(EXPR bad "${bad} + 1")
          endif()
        endforeach()
      endforeach()
    endforeach()
  endforeach()
  set(${out} ${bad} PARENT_SCOPE)
  set(files_${out} ${count} PARENT_SCOPE)
endfunction()

include("${CMAKE_CURRENT_LIST_DIR}/self_test.cmake")

# One file with one include, on line 3.
macro(expect verdict file include)
  expect_of_check(${verdict} ${file} "// line 1\n// line 2\n#include ${include}\n" "${file}:3: #include ${include}: ")
endmacro()

if(DEFINED SELF_TEST)
  expect(allowed core/plan.cpp "\"core/mesh.h\"")
  expect(refused core/plan.cpp "\"simulator/engine.h\"")
  expect(refused core/plan.cpp "\"mesh.h\"")
  expect(refused core/plan.cpp "<core/mesh.h>")
  expect(refused core/plan.cpp "<nlohmann/json.hpp>")
  expect(refused core/plan.cpp "<mutex>")
  expect(allowed core/io/json.cpp "<nlohmann/json.hpp>")
  expect(refused kernels/cpu/gelu.cpp "\"core/check.h\"")
  expect(refused simulator/engine.cpp "\"executor/execute.h\"")
  expect(refused executor/execute.cpp "\"simulator/engine.h\"")
  expect(refused executor/execute.cpp "<cuda_runtime.h>")
  expect(allowed executor/device_cuda.cu "<cuda_runtime.h>")
  expect(allowed executor/communicator_nccl.cpp "<nccl.h>")
  expect(refused executor/device_cuda.cu "<nccl.h>")
  expect(refused lessons/ring.cpp "\"executor/execute.h\"")
  expect(allowed visualizer/ui/theme.cpp "<imgui.h>")
  expect(refused visualizer/ui/theme.cpp "<GLFW/glfw3.h>")
  expect(allowed visualizer/window.cpp "<GLFW/glfw3.h>")
  expect(refused visualizer/ui/theme.cpp "\"executor/execute.h\"")
  expect(refused visualizer/models/layout.cpp "\"simulator/engine.h\"")
  expect(allowed visualizer/main.cpp "<imgui.h>")
  expect(refused visualizer/models/layout.cpp "<imgui.h>")
  expect(refused visualizer/models/layout.h "\"visualizer/theme.h\"")
  expect(allowed cli/main.cpp "<CLI/CLI.hpp>")
  expect(allowed cli/show.cpp "\"visualizer/models/layout.h\"")
  expect(refused cli/show.cpp "\"visualizer/theme.h\"")
  expect(allowed tests/core/plan_test.cpp "\"executor/execute.h\"")
  expect(refused tests/core/plan_test.cpp "<catch2/catch.hpp>")
  file(REMOVE_RECURSE "${SELF_TEST}")
  return()
endif()

check_tree("${ROOT}" violations)
if(files_violations EQUAL 0)
  message(FATAL_ERROR "no source file under ${ROOT}: nothing was checked")
endif()
if(violations)
  message(FATAL_ERROR "${violations} include(s) cross a layer; the rules are at the top of tests/layering_test.cmake")
endif()
message("${files_violations} files checked")
