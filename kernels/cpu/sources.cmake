# Highway's headers, read again for each instruction set, take longer to compile than most of these sources do: those of a group
# are compiled in one piece, all of them for one instruction set and then all for the next. In a group no two sources give
# different things one name.
set(LOCKSTEP_CPU_GROUPS small products)
set(small activation batch_norm dropout fingerprint fma_peak gather_images gradient_sum loss pool_avg pool_global pool_max simd_choice
  smooth_activation update)
set(small_plain conv2d_padding cpu_ops gather_features) # of which no instruction set has its own
set(products conv2d linear)
set(LOCKSTEP_CPU_ALONE conv2d_backward_weights)

# lockstep_includes(VARIABLE NAME...): the lines that include these sources.
function(lockstep_includes variable)
  list(TRANSFORM ARGN REPLACE "(.+)" "#include \"kernels/cpu/\\1.cpp\"\n")
  list(JOIN ARGN "" lines)
  set(${variable} "${lines}" PARENT_SCOPE)
endfunction()

# lockstep_cpu_sources(VARIABLE): the files to compile, those of a group through a file that includes them; each by itself,
# where LOCKSTEP_IN_ONE_PIECE is OFF.
function(lockstep_cpu_sources variable)
  set(files ${LOCKSTEP_CPU_ALONE})
  list(TRANSFORM files APPEND .cpp)
  foreach(group ${LOCKSTEP_CPU_GROUPS})
    if($CACHE{LOCKSTEP_IN_ONE_PIECE})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/${group}.cpp)
      # What Highway is to include again is this file, though each source in it names itself.
      set(again "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${file}\"\n")
      lockstep_includes(sources ${${group}})
      lockstep_includes(plain_sources ${${group}_plain})
      file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
        "#include \"kernels/cpu/simd_targets.hpp\"\n${again}#include \"hwy/foreach_target.h\"\n${sources}${again}#if HWY_ONCE\n${plain_sources}#endif\n")
      list(APPEND files ${file})
    else()
      set(names ${${group}} ${${group}_plain})
      list(TRANSFORM names APPEND .cpp)
      list(APPEND files ${names})
    endif()
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
