# The Debian package, by CPack: launch/package, or cmake --build BUILD --target package. What it depends on beside libraries,
# which dpkg-shlibdeps finds, is Open MPI's mpirun. A build with CUDA makes a package of another name: its program needs nothing
# more (CUDA's runtime is linked statically), its plugins need NCCL, cuDNN and cuBLAS, which are not Debian's.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
# No address is published yet: -DLOCKSTEP_MAINTAINER="Your Name <you@your.domain>" names who packs it.
set(LOCKSTEP_MAINTAINER "The Lockstep authors <authors@lockstep.invalid>" CACHE STRING "Maintainer of the Debian package")
set(CPACK_PACKAGE_CONTACT ${LOCKSTEP_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "data-parallel training whose weights do not depend on the ranks")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"Lockstep trains neural networks that classify images on many processes, with
mpirun, on processors or GPUs. Weights, losses and accuracies are the same bits
on any number of ranks; runs go on where they stopped, and can be proved by
computing them again. Networks and jobs are YAML files.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/launch/package-files.cmake)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, curl") # lockstep-get-data
if(LOCKSTEP_CUDA)
  set(CPACK_DEBIAN_PACKAGE_NAME lockstep-cuda)
  set(CPACK_DEBIAN_PACKAGE_PROVIDES lockstep)
  set(CPACK_DEBIAN_PACKAGE_CONFLICTS lockstep)
  set(CPACK_DEBIAN_PACKAGE_REPLACES lockstep)
  # Folders of the plugins' libraries: dpkg-shlibdeps must find them, though nothing depends on them.
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CUDAToolkit_LIBRARY_DIR})
  foreach(library NCCL_LIBRARY CUDNN_LIBRARY)
    if(${library})
      cmake_path(GET ${library} PARENT_PATH folder)
      list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${folder})
    endif()
  endforeach()
  set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libnccl2, libcudnn9-cuda-${CUDAToolkit_VERSION_MAJOR}, libcublas-${CUDAToolkit_VERSION_MAJOR}-${CUDAToolkit_VERSION_MINOR}")
endif()
include(CPack)
