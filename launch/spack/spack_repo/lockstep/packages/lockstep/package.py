# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""A recipe for Spack 1.0 and newer. In a clone of Lockstep:

    spack repo add launch/spack/spack_repo/lockstep
    spack install lockstep@main                     # as committed on the branch main of this clone
    spack dev-build lockstep@main                   # the files as they are
    spack install lockstep@main +cuda cuda_arch=90
"""

from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Lockstep(CMakePackage, CudaPackage):
    """Data-parallel training of neural networks: the same weights, bit for bit, on any number of ranks."""

    # No address of releases is published yet: the clone in which this recipe lies.
    git = Path(__file__).resolve().parents[6].as_uri()

    license("MIT")

    version("main", branch="main")

    variant("nccl", default=True, when="+cuda", description="Sum gradients of GPUs over NCCL")
    variant("vendor", default=False, when="+cuda", description="Kernels of cuDNN and cuBLAS, to compare with")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("googletest", type="build")  # configuring looks for it

    depends_on("mpi@3:")
    depends_on("yaml-cpp")
    depends_on("cli11@2:")
    depends_on("fmt@9:")
    depends_on("nlohmann-json")
    depends_on("highway@1:")
    depends_on("asio")
    depends_on("boost +context")
    depends_on("openssl")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("libpng")
    depends_on("libwebp")
    depends_on("zlib-api")
    depends_on("protobuf")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.14:", when="+nccl")
    depends_on("cudnn@9:", when="+vendor")
    depends_on("curl", type="run")  # lockstep-get-data

    conflicts("%gcc@:11", msg="Lockstep is C++20: GCC 12 or newer")

    @property
    def build_targets(self):
        targets = ["lockstep_program"]  # and not the tests
        for part in ("nccl", "vendor"):
            if self.spec.satisfies(f"+{part}"):
                targets.append(f"lockstep_{part}")
        return targets

    def cmake_args(self):
        args = [
            self.define_from_variant("LOCKSTEP_WITH_CUDA", "cuda"),
            self.define("LOCKSTEP_MPI", "any"),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("CMAKE_SKIP_INSTALL_ALL_DEPENDENCY", True),
        ]
        if self.spec.satisfies("+nccl"):
            args.append(self.define("NCCL_ROOT", self.spec["nccl"].prefix))
        if self.spec.satisfies("+vendor"):
            args.append(self.define("CUDNN_ROOT", self.spec["cudnn"].prefix))
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
