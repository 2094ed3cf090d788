# Writes build_facts.cpp, if it would differ: cmake -Dsource=DIR -Dtarget=FILE -D... -P build_facts.cmake. Run at every build, so
# that the commit is that of the sources; a tree without git, or one inside of another repository, has none.
set(commit "not known")
find_program(git git)
if(git)
  file(REAL_PATH ${source} source)
  execute_process(COMMAND ${git} -C ${source} rev-parse --show-toplevel OUTPUT_VARIABLE top ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(top STREQUAL source)
    execute_process(COMMAND ${git} -C ${source} describe --always --abbrev=40 --exclude=* --dirty=\ and\ changes RESULT_VARIABLE failed
      OUTPUT_VARIABLE described ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT failed)
      set(commit ${described})
    endif()
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/build_facts.cpp.in ${target} @ONLY ESCAPE_QUOTES)
