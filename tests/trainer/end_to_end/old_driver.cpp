// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A stand-in for libcuda.so.1 of a driver that is older than any toolkit we build with: CUDA 11.4.
// NOLINTBEGIN: names and linkage are CUDA's
extern "C" {

int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}
int cuInit(unsigned /*flags*/) {
  return 0;
}
/// Knows nothing: CUDA_ERROR_NOT_FOUND.
int cuGetProcAddress(const char* /*symbol*/, void** function, int /*version*/, unsigned long long /*flags*/) {
  *function = nullptr;
  return 500;
}
}
// NOLINTEND
