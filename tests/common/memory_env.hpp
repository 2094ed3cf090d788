// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A disk in memory, for tests. A base, what was written and not synced, power losses, and faults of its calls.
#pragma once

#include "common/env.hpp"
#include "tests/support/prelude.hpp"

#include <compare>

namespace lockstep {

// A file system in memory that can be asked what a power loss would have left of it.

/// A tree of files and directories; node 0 is the root. A value: copies are independent.
struct MemoryDisk {
  struct Node {
    bool directory = false;
    std::vector<std::byte> data;
    std::map<std::string, int> entries;
    auto operator<=>(const Node&) const = default;  // NOLINT(modernize-use-nullptr): there is none to use
  };
  std::vector<Node> nodes{Node{true, {}, {}}};

  /// -1 if there is none.
  int find(const std::string& path) const;
  std::size_t used_bytes() const;
  auto operator<=>(const MemoryDisk&) const = default;  // NOLINT(modernize-use-nullptr): likewise
};

/// One change, or one promise that earlier changes last.
struct DiskOp {
  enum class Kind { kCreate, kMakeDirectory, kRename, kRemove, kWrite, kSync, kSyncDirectory };
  Kind kind{};
  int node = 0;          ///< index in MemoryDisk::nodes
  int directory = 0;     ///< parent node, for changes of names
  std::string name{};    ///< in `directory`
  int to_directory = 0;  ///< new parent node of a rename
  std::string to_name{};
  std::size_t offset = 0;  ///< byte at which a write begins
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

/// Disk after a power loss at the end of `ops`, which started from a fully synced `base`. A name lasts
/// once its directory was synced after the change; data last once their file was synced after the
/// write. What was not synced may be there, not there, or, for data, there up to some byte, or there as
/// zeros.
MemoryDisk after_power_loss(const MemoryDisk& base, std::span<const DiskOp> ops, const PowerLoss& loss);

// An Env on a MemoryDisk that records what it is asked to do, and fails on demand.

class MemoryEnv : public Env {
 public:
  explicit MemoryEnv(MemoryDisk disk = {}) : disk_(std::move(disk)) {}

  const MemoryDisk& disk() const { return disk_; }
  /// The contents of a file, to be damaged.
  std::vector<std::byte>& file(const std::string& path);

  /// Changes since start_trace().
  const std::vector<DiskOp>& trace() const { return trace_; }
  void start_trace() { trace_.clear(); }

  static constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  /// The call with this number (from 0, counted from now on) fails, and with `for_good` all after it. A write
  /// that fails has written half.
  void fail_at(std::size_t call, bool for_good);
  /// The disk is full at so many bytes.
  void set_capacity(std::size_t bytes) { capacity_ = bytes; }
  std::size_t calls() const { return calls_; }
  /// Called first in every call, with its name and path, outside of any lock.
  std::function<void(const std::string& call, const std::string& path)> on_call;

  std::unique_ptr<WritableFile> create(const std::string& path) override;
  std::vector<std::byte> read_part(const std::string& path, std::uint64_t most, bool at_end) override;
  std::uint64_t size(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void sync_directory(const std::string& path) override;
  void make_directory(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  bool exists(const std::string& path) override;
  void remove_file(const std::string& path) override;
  Entry entry(const std::string& path) override;
  bool remove_directory(const std::string& path, std::span<const std::string> files) override;
  std::unique_ptr<FileClaim> claim(const std::string& path) override;
  void pause(std::chrono::milliseconds) override { ++pauses_; }

  /// How often a caller waited for better times.
  std::size_t pauses() const { return pauses_; }

 private:
  friend class FileInMemory;
  bool fails_now(const std::string& call, const std::string& path);
  void begin(const std::string& call, const std::string& path);
  int existing(const std::string& call, const std::string& path) const;
  void record(DiskOp op);
  void write(int node, const std::string& path, std::span<const std::byte> bytes);

  MemoryDisk disk_;
  std::vector<DiskOp> trace_;
  std::size_t pauses_ = 0, calls_ = 0, fail_at_ = kNever, capacity_ = kNever;
  bool for_good_ = false;
};

}  // namespace lockstep
