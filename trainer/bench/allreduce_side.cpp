// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Makes a device's side: a device for each rank, an all-reduce, collectives.
#include "trainer/bench/allreduce_side.hpp"

#include "comm/agreement.hpp"
#include "comm/device_reducers.hpp"
#include "trainer/ranks/device_mapping.hpp"

#include <optional>
#include <utility>

namespace lockstep::bench {

const Platform* platform_of(const AllreduceOptions& options, const Platform& gpus) {
  if (options.device == "emulated") return &emulated::platform();
  const bool on_gpu =
      options.device == "cuda" || (options.device == "auto" && backend_named(options.backend).needs_gpus);
  return on_gpu ? &gpus : nullptr;
}

void require_host_backend(Communicator& comm, const AllreduceOptions& options) {
  agree(comm, [&] {
    choose_all_reduce({.wanted = backend_named(options.backend).gradients,
                       .device_kind = "cpu",
                       .world_size = comm.size(),
                       .shared_gpus = {},
                       .problems = {}});
  });
}

std::unique_ptr<DeviceSide> take_device(Communicator& comm, const AllreduceOptions& options,
                                        const Platform& platform) {
  auto side = std::make_unique<DeviceSide>();
  agree(comm, [&] {
    const int visible = static_cast<int>(platform.devices().size());
    side->device =
        platform.make_device(choose_gpu(comm.local_rank(), comm.local_size(), visible, std::nullopt));
  });
  side->setup = set_up_all_reduce(comm, *side->device, backend_named(options.backend).gradients);
  if (side->setup.all_reduce == nullptr) {
    auto all_reduce = device_reducer(GradientPath::kStaged).make(comm, *side->device);
    side->setup = {.all_reduce = std::move(all_reduce),
                   .description = "",
                   .backend = std::string(comm.backend()),
                   .path = GradientPath::kStaged};
    side->setup.description = side->setup.all_reduce->name();
  }
  return side;
}

std::unique_ptr<DeviceCollectives> make_collectives(Communicator& comm, const DeviceSide& side) {
  return device_reducer(side.setup.path).make_collectives(comm, *side.device);
}

}  // namespace lockstep::bench
