// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Demonstration of an all-reduce: every rank sends the numbers that it holds to rank 0, which prints them.
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "comm/device/device_all_reduce.hpp"
#include "common/output.hpp"
#include "common/text_layout.hpp"
#include "kernels/device_buffer.hpp"
#include "trainer/ranks/rank_runner.hpp"
#include "trainer/tools/allreduce_bench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace lockstep::bench {
namespace {

using Numbers = std::vector<float>;

/// In place, over all ranks.
using AllReduceNumbers = std::function<void(Numbers&)>;

/// By way of the device's memory and its all-reduce.
void all_reduce_on_device(Communicator& comm, DeviceSide& side, Numbers& data) {
  const auto stream = side.device->make_stream();
  const auto done = side.device->make_event();
  const DeviceBuffer<float> there(*side.device, data.size());
  stream->copy_to_device(there.data(), data.data(), there.bytes());
  side.setup.all_reduce->all_reduce(*stream, there.data(), there.size());
  stream->copy_to_host(data.data(), there.data(), there.bytes());
  stream->record(*done);
  wait_for(*done, comm, "the numbers on the GPU", side.setup.all_reduce.get());
}

/// "[[0, 1], [2, 3]]": rows of so many numbers.
std::string matrix_text(const Numbers& numbers, std::size_t columns) {
  std::vector<std::string> rows;
  for (std::size_t i = 0; i < numbers.size(); i += columns) {
    const auto row = std::span(numbers).subspan(i, std::min(columns, numbers.size() - i));
    rows.push_back(fmt::format("[{}]", fmt::join(row, ", ")));
  }
  return fmt::format("[{}]", fmt::join(rows, ", "));
}

/// Rank 0 prints a line for each rank.
void print_of_ranks(Communicator& comm, const Numbers& mine, std::size_t columns) {
  const auto texts = gather_text(comm, matrix_text(mine, columns));
  for (int rank = 0; comm.rank() == 0 && rank < comm.size(); ++rank)
    print("  rank {}: {}\n", rank, at(texts, rank));
}

void title(const Communicator& comm, const std::string& text) {
  if (comm.rank() == 0) print("{}\n", text);
}

void show_get_params(Communicator& comm) {
  Numbers bias(4, comm.rank() == 0 ? 0.5F : 0.0F);
  title(comm, "get_params: rank 0 has made b1, the others have only room for it");
  print_of_ranks(comm, bias, 4);
  replicate(comm, std::span(bias), 0);
  title(comm, "after replicate:");
  print_of_ranks(comm, bias, 4);
}

void show_sum(Communicator& comm, const AllReduceNumbers& all_reduce) {
  Numbers data(2, static_cast<float>(comm.rank() + 1));
  title(comm, "\nbefore allreduce:");
  print_of_ranks(comm, data, 2);
  all_reduce(data);
  title(comm, "after allreduce:");
  print_of_ranks(comm, data, 2);
}

/// Whole rows, cut as torch.chunk cuts them: the last ranks may get none.
std::vector<std::size_t> rows_of_ranks(std::size_t rows, int ranks, std::size_t columns) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t piece = (rows + n - 1) / n;
  std::vector<std::size_t> counts(n);
  for (std::size_t rank = 0; rank < n; ++rank)
    counts[rank] = (std::min(rows, (rank + 1) * piece) - std::min(rows, rank * piece)) * columns;
  return counts;
}

void show_split(Communicator& comm) {
  constexpr std::size_t kRows = 4, kColumns = 5;
  Numbers data(comm.rank() == 0 ? kRows * kColumns : 0);
  std::iota(data.begin(), data.end(), 0.0F);
  title(comm, fmt::format("\ninput: {}", matrix_text(data, kColumns)));
  const auto counts = rows_of_ranks(kRows, comm.size(), kColumns);
  Numbers mine = scatter(comm, std::span<const float>(data), counts, 0);
  title(comm, fmt::format("scattered over {} on {}:", counted(comm.size(), "rank"), comm.host()));
  print_of_ranks(comm, mine, kColumns);
  parallel_apply(comm, [&] {
    for (float& number : mine) number *= number;
  });
  title(comm, "after parallel_apply, in which each rank squares what it has:");
  print_of_ranks(comm, mine, kColumns);
  const Numbers whole = gather_to(comm, std::span<const float>(mine), counts, 0);
  title(comm, fmt::format("gathered on rank 0: {}", matrix_text(whole, kColumns)));
}

void show(Communicator& comm, const AllReduceNumbers& all_reduce) {
  show_get_params(comm);
  show_sum(comm, all_reduce);
  show_split(comm);
}

}  // namespace

void show_allreduce(Communicator& comm, const AllreduceOptions& options) {
  const Platform* platform = platform_of(options, cuda::platform());
  if (platform == nullptr) {
    require_host_backend(comm, options);
    return show(comm, [&](Numbers& data) { comm.all_reduce(std::span(data)); });
  }
  run_leaking_on_peer_loss(take_device(comm, options, *platform), [&](DeviceSide& side) {
    title(comm, fmt::format("allreduce in the memory of {}, over {}", side.device->properties().name,
                            side.setup.description));
    show(comm, [&](Numbers& data) { all_reduce_on_device(comm, side, data); });
  });
}

}  // namespace lockstep::bench
