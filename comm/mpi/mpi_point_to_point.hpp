// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Messages between two ranks as MPI's own.
#pragma once

#include "comm/point_to_point.hpp"

#include <mpi.h>

namespace lockstep {

/// Uses every tag of `comm`, which belongs to its caller alone: sums have tags, too.
class MpiPointToPoint final : public PointToPoint {
 public:
  MpiPointToPoint(MPI_Comm comm, int size) : comm_(comm), size_(size) {}

  std::unique_ptr<PendingCollective> start_send(std::span<const std::byte> data, int to, int tag) override;
  std::unique_ptr<PendingCollective> start_receive(std::span<std::byte> data, int from, int tag) override;

 private:
  MPI_Comm comm_;
  int size_;
};

}  // namespace lockstep
