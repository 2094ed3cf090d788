// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Loads libnvidia-ml.so.1 and asks it; a missing answer is an answer, too.
#include "kernels/nvml.hpp"

#include <dlfcn.h>

#include <utility>

namespace lockstep {

namespace {

// From nvml.h, which not every toolkit brings along; its ABI never changes.
struct Memory {
  unsigned long long total, free, used;
};
constexpr int kNvlinkCapability = 2;  // NVML_P2P_CAPS_INDEX_NVLINK
constexpr int kStatusOk = 0;          // NVML_P2P_STATUS_OK

}  // namespace

template <typename... Arguments>
bool Nvml::call(const char* function, Arguments... arguments) const {
  const auto address = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function));
  return address != nullptr && address(arguments...) == 0;
}

std::unique_ptr<Nvml> Nvml::open(const char* library) {
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  std::unique_ptr<Nvml> nvml(new Nvml(handle));
  return nvml->call("nvmlInit_v2") ? std::move(nvml) : nullptr;
}

Nvml::~Nvml() {
  call("nvmlShutdown");
  dlclose(library_);
}

std::optional<void*> Nvml::find(const std::string& uuid) const {
  void* device = nullptr;
  if (!call("nvmlDeviceGetHandleByUUID", uuid.c_str(), &device)) return std::nullopt;
  return device;
}

std::optional<std::string> Nvml::driver_version() const {
  char text[80] = {};
  if (!call("nvmlSystemGetDriverVersion", &text[0], static_cast<unsigned>(sizeof text))) return std::nullopt;
  return text;
}

std::optional<std::size_t> Nvml::free_bytes(const std::string& uuid) const {
  const auto device = find(uuid);
  Memory memory{};
  if (!device || !call("nvmlDeviceGetMemoryInfo", *device, &memory)) return std::nullopt;
  return memory.free;
}

std::optional<bool> Nvml::nvlink(const std::string& a, const std::string& b) const {
  const auto from = find(a), to = find(b);
  int status = 0;
  if (!from || !to || !call("nvmlDeviceGetP2PStatus", *from, *to, kNvlinkCapability, &status))
    return std::nullopt;
  return status == kStatusOk;
}

}  // namespace lockstep
