// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The way into lockstep_nccl.so.
#include "comm/nccl/nccl.hpp"

#include "comm/nccl/nccl_plugin.hpp"
#include "common/advice.hpp"
#include "common/plugin.hpp"

namespace lockstep {
namespace {

auto* factory() {
  static const Plugin plugin{
      .name = "lockstep_nccl", .needs = "NCCL", .otherwise = advice("use {backend}mpi")};
  return plugin_function<decltype(lockstep_make_nccl_all_reduce)>(plugin, "lockstep_make_nccl_all_reduce");
}

}  // namespace

void load_nccl() {
  factory();
}

std::unique_ptr<DeviceAllReduce> make_nccl_all_reduce(Communicator& comm, Device& device) {
  return std::unique_ptr<DeviceAllReduce>(factory()(comm, device));
}

}  // namespace lockstep
