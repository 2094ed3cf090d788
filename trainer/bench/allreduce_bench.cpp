// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
#include "trainer/bench/allreduce_bench.hpp"

#include "comm/staged/staged_all_reduce.hpp"
#include "kernels/runtime/output.hpp"
#include "trainer/agreement.hpp"
#include "trainer/bench/allreduce_buffers.hpp"
#include "trainer/device/all_reduce_choice.hpp"
#include "trainer/device/device_mapping.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace lockstep::bench {
namespace {

/// Small integers, so that fp32 sums are exact and every element can be checked.
template <typename T>
std::vector<T> terms(std::size_t count, int rank) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<int>(i % 251) + rank);
  return values;
}

template <typename T>
std::int64_t count_wrong(std::span<const T> sums, int ranks) {
  const int rank_sum = ranks * (ranks - 1) / 2;
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] != static_cast<T>(static_cast<int>(i % 251) * ranks + rank_sum)) ++wrong;
  }
  return wrong;
}

/// Once, from the start; over all ranks.
template <typename T, typename Buffer>
std::int64_t wrong_elements(Communicator& comm, Buffer& buffer, const std::vector<T>& mine) {
  buffer.load(mine);
  comm.barrier();
  buffer.all_reduce();
  std::array<std::int64_t, 1> wrong{count_wrong(std::span<const T>(buffer.values()), comm.size())};
  comm.all_reduce(std::span<std::int64_t>(wrong));
  return wrong[0];
}

void print_title(const Communicator& comm, const AllreduceOptions& options, const std::string& path) {
  if (comm.rank() != 0) return;
  print("all-reduce over {}, {} rank{}, median of {}\n\n", path, comm.size(), comm.size() == 1 ? "" : "s",
        options.repetitions);
  print("{:>12} {:>12} {:>6} {:>6} {:>10} {:>8} {:>8} {:>7}\n", "size", "count", "type", "redop", "time",
        "algbw", "busbw", "#wrong");
  print("{:>12} {:>12} {:>6} {:>6} {:>10} {:>8} {:>8} {:>7}\n", "(B)", "(elements)", "", "", "(us)", "(GB/s)",
        "(GB/s)", "");
}

struct Row {
  std::size_t bytes, count;
  std::string_view type;
  double seconds;
  std::int64_t wrong;
};

void print_row(const Communicator& comm, const Row& row) {
  if (comm.rank() != 0) return;
  const double algorithm = row.seconds > 0 ? static_cast<double>(row.bytes) / row.seconds * 1e-9 : 0;
  const double bus = algorithm * 2 * (comm.size() - 1) / comm.size();
  print("{:>12} {:>12} {:>6} {:>6} {:>10.2f} {:>8.2f} {:>8.2f} {:>7}\n", row.bytes, row.count, row.type,
        "sum", row.seconds * 1e6, algorithm, bus, row.wrong);
}

/// Checked before and after it is timed. @returns the number of wrong elements
template <typename T, typename Make>
std::int64_t run_row(Communicator& comm, const AllreduceOptions& options, std::size_t bytes,
                     std::string_view type, const Make& make) {
  const std::vector<T> mine = terms<T>(bytes / sizeof(T), comm.rank());
  auto buffer = make.template operator()<T>(mine.size());
  std::int64_t wrong = wrong_elements(comm, buffer, mine);
  const double seconds = buffer.seconds(options.repetitions);
  wrong += wrong_elements(comm, buffer, mine);
  print_row(comm, {mine.size() * sizeof(T), mine.size(), type, seconds, wrong});
  return wrong;
}

/// @param make  make<T>(count): a buffer of T
template <typename Make>
std::int64_t run_rows(Communicator& comm, const AllreduceOptions& options, const Make& make) {
  std::int64_t wrong = 0;
  for (std::size_t bytes = options.min_bytes; bytes <= options.max_bytes; bytes *= 2) {
    wrong += run_row<std::int64_t>(comm, options, bytes, "int64", make);
    wrong += run_row<float>(comm, options, bytes, "float", make);
  }
  return wrong;
}

std::int64_t bench_host(Communicator& comm, const AllreduceOptions& options) {
  agree(comm, [&] {
    choose_all_reduce({.backend = options.backend,
                       .device_kind = "cpu",
                       .world_size = comm.size(),
                       .shared_gpus = {},
                       .nccl_problem = ""});
  });
  print_title(comm, options, std::string(comm.backend()));
  return run_rows(comm, options, [&]<typename T>(std::size_t count) { return HostBuffer<T>(comm, count); });
}

std::unique_ptr<Device> take_device(Communicator& comm, const Platform& platform) {
  std::unique_ptr<Device> device;
  agree(comm, [&] {
    const int visible = static_cast<int>(platform.devices().size());
    device = platform.make_device(choose_gpu(comm.local_rank(), comm.local_size(), visible, std::nullopt));
  });
  return device;
}

std::int64_t bench_device(Communicator& comm, const AllreduceOptions& options, const Platform& platform) {
  const auto device = take_device(comm, platform);
  AllReduceSetup setup = set_up_all_reduce(comm, *device, options.backend);
  if (setup.all_reduce == nullptr) {
    setup = {make_staged_all_reduce(comm, *device), std::string(comm.backend()) + " through pinned memory"};
  }
  print_title(comm, options, fmt::format("{} ({})", setup.description, device->facts().name));
  return run_rows(comm, options, [&]<typename T>(std::size_t count) {
    return BufferOnDevice<T>(comm, *device, *setup.all_reduce, count);
  });
}

}  // namespace

std::int64_t bench_allreduce(Communicator& comm, const AllreduceOptions& options) {
  const bool on_gpu = options.device == "cuda" || (options.device == "auto" && options.backend == "nccl");
  if (on_gpu) return bench_device(comm, options, cuda::platform());
  if (options.device == "emulated") return bench_device(comm, options, emulated::platform());
  return bench_host(comm, options);
}

}  // namespace lockstep::bench
