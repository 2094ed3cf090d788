// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "kernels/emulation/stream.hpp"

#include <cublas_v2.h>

#include <cstdlib>

namespace emulation = lockstep::emulation;

/// Added to each number of a product, for tests of those who compare.
static const float wrong_by = std::getenv("FAKE_CUBLAS_IS_WRONG") == nullptr ? 0 : 1;

struct cublasContext {
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
};

const char* cublasGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "the resource allocation failed" : "another failure";
}

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t /*handle*/, cublasMath_t /*mode*/) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t /*handle*/, cublasAtomicsMode_t /*mode*/) {
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  *handle = {stream, nullptr};
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t /*bytes*/) {
  handle->workspace = workspace;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m,
                           int n, int k, const float* alpha, const float* a, int lda, const float* b, int ldb,
                           const float* beta, float* c, int ldc) {
  const bool fits = lda >= (transa == CUBLAS_OP_N ? m : k) && ldb >= (transb == CUBLAS_OP_N ? k : n) &&
                    ldc >= m && *alpha == 1 && *beta == 0;
  if (handle->workspace == nullptr || !fits) return CUBLAS_STATUS_INVALID_VALUE;
  emulation::queue(handle->stream, [=] {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        double sum = 0;
        for (int l = 0; l < k; ++l) {
          const float x = transa == CUBLAS_OP_N ? a[l * lda + i] : a[i * lda + l];
          const float y = transb == CUBLAS_OP_N ? b[j * ldb + l] : b[l * ldb + j];
          sum += static_cast<double>(x) * y;
        }
        c[j * ldc + i] = static_cast<float>(sum) + wrong_by;
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
