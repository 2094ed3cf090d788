# Changes the files of cmake --install as Debian wants them; CPack runs this before it packs them: the licence as "copyright", a
# changelog of Debian's form beside ours, texts compressed, libraries from the system's folders alone, no empty folders, manual
# pages, and the time of $SOURCE_DATE_EPOCH on all files, so that the same files make the same package.
set(root ${CPACK_TEMPORARY_DIRECTORY}${CPACK_PACKAGING_INSTALL_PREFIX})
set(name ${CPACK_PACKAGE_NAME})
if(CPACK_DEBIAN_PACKAGE_NAME) # of a build with CUDA, and of the library
  set(name ${CPACK_DEBIAN_PACKAGE_NAME})
  file(RENAME ${root}/share/doc/lockstep ${root}/share/doc/${name})
endif()
set(documentation ${root}/share/doc/${name})

file(RENAME ${documentation}/LICENSE ${documentation}/copyright)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # of $SOURCE_DATE_EPOCH, if it is set
file(WRITE ${documentation}/changelog "${name} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * CHANGELOG.md.gz says what has changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
if(EXISTS ${root}/share/zsh/site-functions)
  file(RENAME ${root}/share/zsh/site-functions ${root}/share/zsh/vendor-completions)
endif()
if(EXISTS ${root}/bin/lockstep)
  execute_process(COMMAND ${CMAKE_CURRENT_LIST_DIR}/manual-pages ${root}/bin/lockstep ${root}/share/man/man1 COMMAND_ERROR_IS_FATAL ANY)
endif()
file(GLOB pages ${root}/share/man/man1/*.1)
foreach(page ${pages} ${documentation}/changelog ${documentation}/CHANGELOG.md)
  execute_process(COMMAND gzip -9nf ${page} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
file(GLOB plugins ${root}/lib/lockstep/*.so)
file(GLOB programs ${root}/bin/lockstep)
foreach(object ${programs} ${plugins})
  file(RPATH_REMOVE FILE ${object})
endforeach()

execute_process(COMMAND find ${root} -type d -empty -delete COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND chmod -R go-w,a+rX ${root} COMMAND_ERROR_IS_FATAL ANY)
if(DEFINED ENV{SOURCE_DATE_EPOCH})
  execute_process(COMMAND find ${root} -exec touch --no-dereference --date=@$ENV{SOURCE_DATE_EPOCH} {} + COMMAND_ERROR_IS_FATAL ANY)
endif()
