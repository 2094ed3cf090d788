# The sources that are compiled twice: by nvcc for GPUs (kernels/cuda), by the host compiler for the emulator
# (kernels/emulation). A new .cu of this folder is found by itself.
#
# Each group is compiled in one piece. nvcc and the host compiler spend two seconds of a small source's time on CUDA's
# headers. In a group no two sources give different things one name; a source that is in no group is compiled alone.
set(LOCKSTEP_GPU_GROUPS runtime features training matrices)
set(runtime device stream)
set(features activation avg_pool exact_sum linear_backward_weights)
set(training batch_norm epilogue gather gradient_norms group_norm linear_loss loss update)
set(matrices linear_forward max_pool)

# lockstep_gpu_sources(VARIABLE): the files to compile, those of a group through a file that includes them. Separately,
# where LOCKSTEP_IN_ONE_PIECE is OFF.
function(lockstep_gpu_sources variable)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/cuda/*.cu)
  if($CACHE{LOCKSTEP_IN_ONE_PIECE})
    foreach(group ${LOCKSTEP_GPU_GROUPS})
      list(TRANSFORM ${group} REPLACE "(.+)" "#include \"kernels/cuda/\\1.cu\"\n" OUTPUT_VARIABLE includes)
      list(JOIN includes "" includes)
      file(CONFIGURE OUTPUT ${group}.cu CONTENT "${includes}" @ONLY)
      list(TRANSFORM ${group} REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/kernels/cuda/\\1.cu" OUTPUT_VARIABLE grouped)
      list(REMOVE_ITEM files ${grouped})
      list(APPEND files ${CMAKE_CURRENT_BINARY_DIR}/${group}.cu)
    endforeach()
  endif()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
