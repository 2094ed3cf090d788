#!/usr/bin/env bash
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# The core is linked with no library of pictures, of fibers, of schemas, of MPI or of GPUs. libraries_test.sh PROGRAM
set -euo pipefail
libraries=$(ldd "$1")
for library in jpeg png webp boost protobuf mpi cuda nccl; do
  if grep -i "lib$library" <<<"$libraries"; then
    echo "FAILED: $1, which is linked with the core alone, needs lib$library"
    exit 1
  fi
done
