// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// NVML, the driver's management library, and what it knows of GPUs. Unlike CUDA it occupies no memory on them. It
/// is loaded when it is asked for, and may be missing where the driver is there (in containers).
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace lockstep {

/// GPUs are named by DeviceProperties::uuid. Answers that NVML does not have are empty.
class Nvml {
 public:
  /// Null if the library is not there or does not start.
  static std::unique_ptr<Nvml> open(const char* library = "libnvidia-ml.so.1");
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  /// "580.65.06"
  std::optional<std::string> driver_version() const;
  std::optional<std::size_t> free_bytes(const std::string& uuid) const;
  /// True if the two reach each other over NVLink, directly or through a switch.
  std::optional<bool> nvlink(const std::string& a, const std::string& b) const;

 private:
  explicit Nvml(void* library) : library_(library) {}

  /// A function that fills in something and returns 0 if it could.
  template <typename... Arguments>
  bool call(const char* function, Arguments... arguments) const;
  std::optional<void*> find(const std::string& uuid) const;

  void* library_;
};

}  // namespace lockstep
