# find_package(heddle): builds graphs, programs and kernels of TypeScript specs as shared libraries of a CMake project.
#
#   find_package(heddle REQUIRED)    # cmake -Dheddle_DIR="$(npx heddle config --cmake)"
#   heddle_add_library(layers SPECS specs GRAPHS feed_forward attention PLAN fused DTYPES f32 f16 ARCHITECTURES 80 90a)
#   target_link_libraries(app PRIVATE layers)    # and #include "layers.h"
#
# Source is generated when CMake configures, below the build folder. A build configures again after a change of a spec or of a module that it
# imports, and compiles the kernels whose source differs, alone.
cmake_minimum_required(VERSION 3.22)

get_filename_component(heddle_PACKAGE "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
find_program(heddle_NODE node DOC "Node, which runs heddle")
if(NOT heddle_NODE)
  set(heddle_FOUND FALSE)
  set(heddle_NOT_FOUND_MESSAGE "heddle generates source with Node 20 or later, and node is not on the path: set heddle_NODE")
  return()
endif()

# Runs heddle in a folder; an error of heddle ends the configuration with its text.
function(_heddle_run folder)
  execute_process(
    COMMAND "${heddle_NODE}" "${heddle_PACKAGE}/dist/cli.js" ${ARGN}
    WORKING_DIRECTORY "${folder}"
    RESULT_VARIABLE result
    OUTPUT_VARIABLE out
    ERROR_VARIABLE log)
  if(NOT result EQUAL 0)
    list(GET ARGN 0 verb)
    # A notice keeps its lines; an error would be wrapped.
    message(NOTICE "${log}${out}")
    message(FATAL_ERROR "heddle ${verb} ended with ${result}, for the reason above")
  endif()
endfunction()

# Generates the source of a folder of specs once per configuration, and makes CMake configure again when a file that was read changes.
function(_heddle_generate specs root out)
  get_property(done GLOBAL PROPERTY "_heddle_generated_${out}")
  if(done)
    return()
  endif()
  set(depfile "${out}.d")
  _heddle_run("${root}" gen --specs "${specs}" --out "${out}" --depfile "${depfile}")
  # The last rules of the file name each source alone.
  file(STRINGS "${depfile}" sources REGEX "^[^ ].*:$")
  foreach(source IN LISTS sources)
    string(REGEX REPLACE ":$" "" source "${source}")
    string(REPLACE "\\ " " " source "${source}")
    string(REPLACE "\\#" "#" source "${source}")
    string(REPLACE "$$" "$" source "${source}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${source}")
  endforeach()
  set_property(GLOBAL PROPERTY "_heddle_generated_${out}" TRUE)
endfunction()

# Architectures as CMake names them: machine code for each number. Code for Hopper uses instructions of sm_90a.
function(_heddle_architectures result)
  set(found "")
  foreach(architecture IN LISTS ARGN)
    if(architecture STREQUAL "90")
      set(architecture 90a)
    endif()
    if(architecture MATCHES "^[0-9]+[af]?$")
      set(architecture "${architecture}-real")
    elseif(NOT architecture MATCHES "^([0-9]+[af]?-(real|virtual)|native)$")
      message(FATAL_ERROR "heddle_add_library: expected an architecture such as 80, 90a or 90-virtual, got ${architecture}")
    endif()
    list(APPEND found "${architecture}")
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# heddle_add_library(NAME [SPECS dir] GRAPHS... PROGRAMS... KERNELS... [PLAN plan...] [DTYPES f32...] [DEVICE cuda|simt]
#   [ARCHITECTURES 80 90a...] [DIMS n=768...] [ATTRS json] [CONFIG json])
#
# Adds a shared library NAME, whose header is NAME.h. Functions of a program begin with its name, and with its name and type
# (feed_forward_f16_run) if there are several DTYPES. Of several plans, the first that covers a graph is used for it. Without SPECS, names are
# those that heddle ships. ATTRS and CONFIG are as `heddle export` takes them. ARCHITECTURES defaults to CMAKE_CUDA_ARCHITECTURES, and that to
# 80, 90a and PTX for later GPUs. DEVICE simt is the CPU device; the default is cuda.
function(heddle_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 heddle "" "SPECS;DEVICE;ATTRS;CONFIG" "GRAPHS;PROGRAMS;KERNELS;PLAN;DTYPES;ARCHITECTURES;DIMS")
  if(DEFINED heddle_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "heddle_add_library: unknown argument ${heddle_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "heddle_add_library: expected an identifier of C for a name, got ${name}")
  endif()
  set(programs ${heddle_GRAPHS} ${heddle_PROGRAMS} ${heddle_KERNELS})
  if(NOT programs)
    message(FATAL_ERROR "heddle_add_library: ${name} has no GRAPHS, PROGRAMS or KERNELS")
  endif()

  set(root "${CMAKE_CURRENT_SOURCE_DIR}")
  set(export "${CMAKE_CURRENT_BINARY_DIR}/heddle/${name}")
  set(arguments ${programs} --library "${name}" --out "${export}")
  if(DEFINED heddle_SPECS)
    get_filename_component(specs "${heddle_SPECS}" ABSOLUTE BASE_DIR "${root}")
    string(SHA1 key "${specs}")
    string(SUBSTRING "${key}" 0 8 key)
    set(generated "${CMAKE_BINARY_DIR}/heddle/generated-${key}")
    _heddle_generate("${specs}" "${root}" "${generated}")
    list(APPEND arguments --specs "${specs}" --generated "${generated}")
  endif()
  if(NOT DEFINED heddle_DEVICE)
    set(heddle_DEVICE cuda)
  endif()
  list(APPEND arguments --target "${heddle_DEVICE}")
  foreach(option IN ITEMS ATTRS CONFIG)
    if(DEFINED heddle_${option})
      string(TOLOWER "--${option}" flag)
      list(APPEND arguments "${flag}" "${heddle_${option}}")
    endif()
  endforeach()
  if(DEFINED heddle_PLAN)
    list(JOIN heddle_PLAN "," plans)
    list(APPEND arguments --plan "${plans}")
  endif()
  if(DEFINED heddle_DTYPES)
    list(JOIN heddle_DTYPES "," types)
    list(APPEND arguments --dtype "${types}")
  endif()
  foreach(dim IN LISTS heddle_DIMS)
    list(APPEND arguments --dims "${dim}")
  endforeach()
  _heddle_run("${root}" export ${arguments})

  if(DEFINED heddle_ARCHITECTURES)
    _heddle_architectures(CMAKE_CUDA_ARCHITECTURES ${heddle_ARCHITECTURES})
  endif()
  set(HEDDLE_TARGET "${heddle_DEVICE}")
  add_subdirectory("${export}" "${export}/build")
endfunction()
