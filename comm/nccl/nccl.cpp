// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The way into lockstep_nccl.so.
#include "comm/nccl/nccl.hpp"

#include "common/error.hpp"
#include "common/installed.hpp"

#include <cstdlib>

namespace lockstep {
namespace {

template <typename Function>
Function* exported(const char* symbol) {
  static const Plugin plugin{
      .name = "lockstep_nccl", .needs = "NCCL", .otherwise = advice("use {backend}mpi")};
  return plugin_function<Function>(plugin, symbol);
}

}  // namespace

void load_nccl() {
  exported<decltype(lockstep_make_nccl_all_reduce)>("lockstep_make_nccl_all_reduce");
}

bool nccl_shares_gpus() {
  return exported<decltype(lockstep_nccl_shares_gpus)>("lockstep_nccl_shares_gpus")();
}

void set_nccl_defaults() {
  setenv("NCCL_GRAPH_REGISTER", "0", /*overwrite=*/0);
}

std::unique_ptr<DeviceAllReduce> make_nccl_all_reduce(Communicator& comm, Device& device) {
  auto* make = exported<decltype(lockstep_make_nccl_all_reduce)>("lockstep_make_nccl_all_reduce");
  return std::unique_ptr<DeviceAllReduce>(make(comm, device));
}

std::unique_ptr<DeviceLink> make_nccl_link(Communicator& comm, Device& device, LinkEnd end) {
  auto* make = exported<decltype(lockstep_make_nccl_link)>("lockstep_make_nccl_link");
  return std::unique_ptr<DeviceLink>(make(comm, device, end));
}

}  // namespace lockstep
