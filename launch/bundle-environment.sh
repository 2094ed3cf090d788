# shellcheck shell=sh
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Environment of a bundle's programs: libraries, plugins, models and data. Sourced by its commands (bundle-command), in
# any shell, with $bundle set to the bundle's folder. What the caller has set stays in force, except Open MPI's places.

# holding_libraries FOLDER...: those that hold NCCL, cuDNN or cuBLAS, each after a colon.
holding_libraries() {
  for folder in "$@"; do
    for library in "$folder"/libnccl.so.* "$folder"/libcudnn.so.* "$folder"/libcublas.so.*; do
      if [ -e "$library" ]; then printf ':%s' "$folder" && break; fi
    done
  done
}

# cuda_folders: those of the CUDA Toolkit and of Python's nvidia-* wheels. Python itself is asked only where its wheels do not
# lie beside it, for that takes a moment.
cuda_folders() {
  holding_libraries "${CUDA_HOME:-/usr/local/cuda}/lib64"
  wheels=$(holding_libraries "$(dirname "$(command -v python3 || echo /usr/bin/python3)")"/../lib/python3*/site-packages/nvidia/*/lib \
    "${VIRTUAL_ENV:-/usr/local}"/lib/python3*/*-packages/nvidia/*/lib)
  if [ -z "$wheels" ]; then
    wheels=$(holding_libraries "$(python3 -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2>/dev/null || echo /nowhere)"/nvidia/*/lib)
  fi
  printf %s "$wheels"
}

LD_LIBRARY_PATH="${bundle:?}/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}$(cuda_folders)"
export LD_LIBRARY_PATH
export LOCKSTEP_MODELS="${LOCKSTEP_MODELS:-$bundle/share/lockstep/models}"
if [ -d "$bundle/data" ]; then export LOCKSTEP_DATA="${LOCKSTEP_DATA:-$bundle/data}"; fi

# Open MPI's and PMIx's plugins and texts; and no plugins of another hwloc than ours.
export OPAL_PREFIX="$bundle" OPAL_SYSCONFDIR="$bundle/etc/openmpi"
export PMIX_PREFIX="$bundle/pmix" PMIX_EXEC_PREFIX="$bundle/pmix" PMIX_LIBDIR="$bundle/pmix/lib" PMIX_DATADIR="$bundle/pmix/share"
export HWLOC_PLUGINS_PATH="$bundle/lib/hwloc"
# mpirun refuses to start where there is no way to other machines, although it needs none on a single one.
if ! command -v ssh >/dev/null && ! command -v rsh >/dev/null; then export OMPI_MCA_plm="${OMPI_MCA_plm:-^rsh}"; fi
