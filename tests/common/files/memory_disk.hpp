// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A file system in memory that can be asked what a power loss would have left of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

/// A tree of files and directories; node 0 is the root. A value: copies are independent.
struct MemoryDisk {
  struct Node {
    bool directory = false;
    std::vector<std::byte> data;
    std::map<std::string, int> entries;
  };
  std::vector<Node> nodes{Node{true, {}, {}}};

  /// -1 if there is none.
  int find(const std::string& path) const;
  std::size_t used_bytes() const;
};

/// One change, or one promise that earlier changes last.
struct DiskOp {
  enum class Kind { kCreate, kMakeDirectory, kRename, kRemove, kWrite, kSync, kSyncDirectory };
  Kind kind{};
  int node = 0;          ///< what is created, written or synced
  int directory = 0;     ///< where its name is, for changes of names
  std::string name{};    ///< in `directory`
  int to_directory = 0;  ///< of a rename
  std::string to_name{};
  std::size_t offset = 0;  ///< of a write
  std::vector<std::byte> data{};
};

/// Does what the operation says, or nothing if that has become impossible (its source is not there).
void apply(MemoryDisk* disk, const DiskOp& op);

/// How a power loss treats what was not synced.
struct PowerLoss {
  enum class Names { kDrop, kKeep, kPrefix, kRandom };
  enum class Data { kDrop, kKeep, kTorn, kZeros, kRandom };
  Names names = Names::kDrop;
  Data data = Data::kDrop;
  std::uint32_t seed = 0;

  /// Variants 0 to 19 are all pairs of the above, further ones repeat them with other seeds.
  static PowerLoss variant(std::uint32_t index);
};

/// The disk that is found after a power loss at the end of `ops`, which started from a fully synced `base`. A
/// name lasts once its directory was synced after the change; data last once their file was synced after the
/// write. What was not synced may be there, not there, or, for data, there up to some byte, or there as
/// zeros.
MemoryDisk after_power_loss(const MemoryDisk& base, std::span<const DiskOp> ops, const PowerLoss& loss);

}  // namespace lockstep
