// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A management library of three GPUs: GPU-a and GPU-b are connected by NVLink, GPU-c is not. Its functions
/// are those of nvml.h, and fail before nvmlInit_v2(). A copy named libcudnn.so.9 tells its version.
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

constexpr int kUninitialized = 1, kNotFound = 6;
bool initialized = false;
char gpus[] = {'a', 'b', 'c'};

struct Memory {
  unsigned long long total, free, used;
};

}  // namespace

extern "C" {
int nvmlInit_v2();
int nvmlShutdown();
int nvmlSystemGetDriverVersion(char* text, unsigned size);
int nvmlDeviceGetHandleByUUID(const char* uuid, void** device);
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory);
int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, int* status);
std::size_t cudnnGetVersion();
}

int nvmlInit_v2() {
  initialized = true;
  return 0;
}

int nvmlShutdown() {
  initialized = false;
  return 0;
}

int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  std::snprintf(text, size, "580.65.06");
  return initialized ? 0 : kUninitialized;
}

int nvmlDeviceGetHandleByUUID(const char* uuid, void** device) {
  for (char& gpu : gpus) {
    if (std::strncmp(uuid, "GPU-", 4) == 0 && uuid[4] == gpu && uuid[5] == '\0') {
      *device = &gpu;
      return initialized ? 0 : kUninitialized;
    }
  }
  return kNotFound;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  memory->total = 1000;
  memory->free = 100 + static_cast<unsigned long long>(*static_cast<char*>(device));
  return 0;
}

int nvmlDeviceGetP2PStatus(void* a, void* b, int capability, int* status) {
  constexpr int kNvlink = 2, kOk = 0, kNotSupported = 6;
  const bool both = a != &gpus[2] && b != &gpus[2];
  *status = capability == kNvlink && both ? kOk : kNotSupported;
  return 0;
}

std::size_t cudnnGetVersion() {
  return 91234;
}
