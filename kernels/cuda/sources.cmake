# The sources that are compiled twice: by nvcc for GPUs (kernels/cuda) and by the host compiler for the emulator
# (kernels/emulation).
#
# Each group is compiled in one piece: of a small source's time, nvcc and the host compiler spend two seconds on the headers of CUDA.
# In a group no two sources give different things one name. The runtime, which knows every kernel, and the convolutions are groups of
# their own: who needs one kernel of a static library does not get all of them with it.
set(LOCKSTEP_GPU_GROUPS runtime features training matrices classes conv2d conv2d_data)
set(runtime device graph native_ops platform probe properties stream)
set(features fingerprint activation channel_bias exact_sum pool_avg linear_backward_weights)
set(training batch_norm epilogue gather loss update)
set(matrices linear_forward pool_max)
set(classes linear_backward_data pool_global)
set(conv2d conv2d_forward conv2d_backward_weights)
set(conv2d_data conv2d_backward_data)

# lockstep_gpu_sources(VARIABLE): the files to compile, those of a group through a file that includes them; each by itself,
# where LOCKSTEP_IN_ONE_PIECE is OFF.
function(lockstep_gpu_sources variable)
  set(files "")
  foreach(group ${LOCKSTEP_GPU_GROUPS})
    if($CACHE{LOCKSTEP_IN_ONE_PIECE})
      list(TRANSFORM ${group} REPLACE "(.+)" "#include \"kernels/cuda/\\1.cu\"\n" OUTPUT_VARIABLE includes)
      list(JOIN includes "" includes)
      file(CONFIGURE OUTPUT ${group}.cu CONTENT "${includes}" @ONLY)
      list(APPEND files ${CMAKE_CURRENT_BINARY_DIR}/${group}.cu)
    else()
      list(TRANSFORM ${group} REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/kernels/cuda/\\1.cu")
      list(APPEND files ${${group}})
    endif()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
