// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The catalogue of comm/nccl, comm/staged and what will join them.
#include "comm/backends/device_reducers.hpp"

#include "comm/nccl/nccl.hpp"
#include "comm/staged/staged.hpp"
#include "common/spelling.hpp"

#include <array>

namespace lockstep {
namespace {

constexpr std::array kReducers{
    DeviceReducer{.path = GradientPath::kNccl,
                  .name = "nccl",
                  .device_kind = "cuda",
                  .whole_gpus = true,
                  .threads = true,
                  .load = load_nccl,
                  .may_share_gpus = nccl_shares_gpus,
                  .make = make_nccl_all_reduce,
                  .make_link = make_nccl_link},
    DeviceReducer{.path = GradientPath::kStaged, .make = make_staged_all_reduce},
};

}  // namespace

std::span<const DeviceReducer> device_reducers() {
  return kReducers;
}

const DeviceReducer& device_reducer(GradientPath path) {
  return entry_of(kReducers, path, &DeviceReducer::path);
}

}  // namespace lockstep
