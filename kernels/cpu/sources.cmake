# Highway's headers, read again for each instruction set, compile longer than most of these sources. A group is compiled
# in one piece, all of them for one instruction set and then all for the next. In a group no two sources give different
# things one name; a source that is in no group is compiled alone. A new .cpp of this folder is found by itself.
set(LOCKSTEP_CPU_GROUPS small products)
set(small activation avg_pool batch_norm fingerprint gather gradient_sum group_norm loss max_pool scale simd_choice update)
set(products conv2d linear)

# lockstep_cpu_sources(VARIABLE): the files to compile, those of a group through a file that includes them. Separately,
# where LOCKSTEP_IN_ONE_PIECE is OFF.
function(lockstep_cpu_sources variable)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/int16/*.cpp)
  if($CACHE{LOCKSTEP_IN_ONE_PIECE})
    foreach(group ${LOCKSTEP_CPU_GROUPS})
      set(file ${CMAKE_CURRENT_BINARY_DIR}/${group}.cpp)
      # Names this file as what Highway includes again, though each source in it names itself.
      set(again "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${file}\"\n")
      list(TRANSFORM ${group} REPLACE "(.+)" "#include \"kernels/cpu/\\1.cpp\"\n" OUTPUT_VARIABLE includes)
      list(JOIN includes "" includes)
      file(CONFIGURE OUTPUT ${file} @ONLY CONTENT
        "#include \"kernels/cpu/simd_targets.hpp\"\n${again}#include \"hwy/foreach_target.h\"\n${includes}${again}")
      list(TRANSFORM ${group} REPLACE "(.+)" "${CMAKE_CURRENT_SOURCE_DIR}/\\1.cpp" OUTPUT_VARIABLE grouped)
      list(REMOVE_ITEM files ${grouped})
      list(APPEND files ${file})
    endforeach()
  endif()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()
