# Looks for the CUDA toolkit: $CUDACXX, then nvcc on PATH, in $CUDA_HOME, in /usr/local/cuda. Sets LOCKSTEP_CUDA and
# enables the language; LOCKSTEP_CUDA_SUMMARY in the cache says what was found and why, for launch/build and --version
# --verbose. Plugins add what was found of NVIDIA's other libraries.
set(LOCKSTEP_MINIMUM_CUDA 12.0) # C++20

function(lockstep_cuda_summary)
  string(CONCAT summary ${ARGN})
  set(LOCKSTEP_CUDA_SUMMARY "${summary}" CACHE INTERNAL "Which GPU kernels are built, and why")
endfunction()

# Reports what is impossible: an error where CUDA was demanded, otherwise the reason for a build without it.
function(lockstep_no_cuda)
  string(CONCAT reason ${ARGN})
  if(NOT LOCKSTEP_WITH_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "LOCKSTEP_WITH_CUDA is ${LOCKSTEP_WITH_CUDA}, but ${reason}")
  endif()
  lockstep_cuda_summary("CPU-only: " ${reason})
endfunction()

if(NOT LOCKSTEP_WITH_CUDA)
  lockstep_cuda_summary("CPU-only, as LOCKSTEP_WITH_CUDA=${LOCKSTEP_WITH_CUDA} asks")
  return()
endif()

if(NOT EXISTS "${LOCKSTEP_NVCC}")
  unset(LOCKSTEP_NVCC CACHE)
endif()
find_program(LOCKSTEP_NVCC NAMES $ENV{CUDACXX} ${CMAKE_CUDA_COMPILER} nvcc
  PATHS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin DOC "The CUDA compiler")
if(NOT LOCKSTEP_NVCC)
  lockstep_no_cuda("no CUDA toolkit found (looked for nvcc on PATH, in CUDA_HOME, in /usr/local/cuda)")
  return()
endif()

execute_process(COMMAND ${LOCKSTEP_NVCC} --version OUTPUT_VARIABLE version ERROR_VARIABLE version)
if(NOT version MATCHES "release ([0-9.]+)")
  lockstep_no_cuda("${LOCKSTEP_NVCC} does not run")
  return()
endif()
set(version ${CMAKE_MATCH_1})
if(version VERSION_LESS LOCKSTEP_MINIMUM_CUDA)
  lockstep_no_cuda("CUDA ${version} (${LOCKSTEP_NVCC}) is too old, it takes ${LOCKSTEP_MINIMUM_CUDA} or newer")
  return()
endif()

# Two passes of nvcc's front end. From that for compute capability 7.5 comes machine code for the A100 and its kin, and
# PTX, which the driver compiles for all others before 9.0; from that for 9.0, whose kernels may overlap, machine code
# for the H100 and, where nvcc knows them, both kinds of Blackwell, and PTX for what comes after. Given a list of
# architectures, CMake asks for a pass each. Packed for size, four kinds need less room than two did.
set(front_end_flags "")
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES OFF)
  set(newest compute_90,sm_90)
  if(version VERSION_GREATER_EQUAL 12.8)
    set(newest compute_90,sm_90,sm_100,sm_120)
    set(front_end_flags --compress-mode=size)
  endif()
  list(APPEND front_end_flags "--generate-code=arch=compute_75,code=[compute_75,sm_80]"
    "--generate-code=arch=compute_90,code=[${newest}]")
endif()
set(ENV{CUDACXX} ${LOCKSTEP_NVCC})
if(NOT CMAKE_CUDA_COMPILER)
  unset(CMAKE_CUDA_COMPILER CACHE)
endif()
include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  lockstep_no_cuda("CUDA ${version} (${LOCKSTEP_NVCC}) does not work with ${CMAKE_CXX_COMPILER} "
    "${CMAKE_CXX_COMPILER_VERSION}, see CMakeFiles/CMakeError.log in ${CMAKE_BINARY_DIR}")
  return()
endif()
enable_language(CUDA)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION) # CMake 3.25.1 does not know it
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
endif()
if(NOT TARGET CUDA::nvToolsExt) # CMake 3.25's module marks it as deprecated, but CUDA 13 has it no more
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit REQUIRED)
if(front_end_flags)
  add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${front_end_flags}>")
endif()
set(LOCKSTEP_CUDA ON)
lockstep_cuda_summary("with CUDA ${version} (${LOCKSTEP_NVCC})")
