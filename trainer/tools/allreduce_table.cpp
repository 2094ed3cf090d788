// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rows in fixed columns, and the sums that the last lines are made of.
#include "comm/agreement.hpp"
#include "comm/backends/device_reducers.hpp"
#include "common/json_text.hpp"
#include "trainer/device/gpu_choice.hpp"
#include "trainer/device/gradient_path.hpp"
#include "trainer/tools/allreduce_bench.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>
#include <utility>

namespace lockstep::bench {

namespace {

/// Four digits or so, however large: "7.31", "731.0", "73100".
std::string short_number(double value) {
  return fmt::format("{:.{}f}", value, value < 100 ? 2 : value < 10000 ? 1 : 0);
}

/// GB/s; a dash where nothing travelled or the clock saw no time pass.
std::string bandwidth(double bytes_per_second) {
  return bytes_per_second > 0 ? short_number(bytes_per_second * 1e-9) : "-";
}

}  // namespace

std::vector<std::string> AllreduceTable::head() {
  return {fmt::format("#{:>24} {:^26} {:^26}", "", "out-of-place", "in-place"),
          fmt::format("#{:>8} {:>9} {:>5} {:>7} {:>6} {:>6} {:>4} {:>7} {:>6} {:>6} {:>4}", "size", "count",
                      "type", "time", "algbw", "busbw", "#err", "time", "algbw", "busbw", "#err"),
          fmt::format("#{:>8} {:>9} {:>5} {:>7} {:>6} {:>6} {:>4} {:>7} {:>6} {:>6} {:>4}", "(B)", "(elem.)",
                      "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "")};
}

double AllreduceTable::bus_bandwidth(const AllreduceRow& row, const AllreduceResult& result) const {
  if (result.seconds <= 0) return 0;
  return static_cast<double>(row.bytes) / result.seconds * 2 * (ranks_ - 1) / ranks_;
}

std::string AllreduceTable::half(const AllreduceRow& row, const AllreduceResult& result) {
  const bool travels = ranks_ > 1 && result.seconds > 0;
  const double algorithm = travels ? static_cast<double>(row.bytes) / result.seconds : 0;
  bus_bandwidths_ += bus_bandwidth(row, result);
  wrong_ += result.wrong;
  return fmt::format("{:>7} {:>6} {:>6} {:>4}", short_number(result.seconds * 1e6), bandwidth(algorithm),
                     bandwidth(bus_bandwidth(row, result)), result.wrong);
}

std::string AllreduceTable::row(const AllreduceRow& row) {
  rows_.push_back(row);
  const std::string out_of_place = half(row, row.out_of_place), in_place = half(row, row.in_place);
  return fmt::format("{:>9} {:>9} {:>5} {} {}", row.bytes, row.count, row.type, out_of_place, in_place);
}

std::vector<std::string> AllreduceTable::foot() const {
  return {fmt::format("# Out of bounds values : {} {}", wrong_, wrong_ == 0 ? "OK" : "FAILED"),
          ranks_ == 1 ? "# Avg bus bandwidth    : none, with one rank nothing travels"
                      : fmt::format("# Avg bus bandwidth    : {:.4g} GB/s",
                                    bus_bandwidths_ / static_cast<double>(2 * rows_.size()) * 1e-9)};
}

std::string AllreduceTable::json(const std::string& path) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const AllreduceRow& row : rows_) {
    const auto of = [&](const AllreduceResult& result) -> nlohmann::ordered_json {
      return {{"seconds", result.seconds},
              {"bus_bytes_per_second", bus_bandwidth(row, result)},
              {"wrong", result.wrong}};
    };
    rows.push_back({{"bytes", row.bytes},
                    {"count", row.count},
                    {"type", row.type},
                    {"out_of_place", of(row.out_of_place)},
                    {"in_place", of(row.in_place)}});
  }
  return json_text_in_ascii({{"format", kBenchFormat},
                             {"bench", "allreduce"},
                             {"ranks", ranks_},
                             {"path", path},
                             {"wrong", wrong_},
                             {"rows", rows}});
}

// Makes a device's side: a device for each rank, and an all-reduce.

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
                       .world_size = comm.size()});
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
                   .backend = std::string(comm.backend()),
                   .path = GradientPath::kStaged};
    side->setup.description = side->setup.all_reduce->name();
  }
  return side;
}

}  // namespace lockstep::bench
