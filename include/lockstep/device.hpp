// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The place where a Trainer computes: CPU cores, or a GPU that lockstep/gpu.hpp gives.
#pragma once

#include <lockstep/version.hpp>

#include <memory>
#include <string>
#include <utility>

LOCKSTEP_BEGIN_NAMESPACE

/// Cheap to copy.
class Device {
 public:
  Device() = default;  ///< CPU cores

  bool is_gpu() const { return inside_ != nullptr; }
  /// "cpu (AVX-512)", "NVIDIA H100 80GB HBM3"
  std::string name() const;

  struct Inside;
  explicit Device(std::shared_ptr<const Inside> inside) : inside_(std::move(inside)) {}
  /// Null: CPU cores.
  const Inside* inside() const { return inside_.get(); }

 private:
  std::shared_ptr<const Inside> inside_;
};

LOCKSTEP_END_NAMESPACE
