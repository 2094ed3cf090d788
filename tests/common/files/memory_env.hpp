// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// An Env on a MemoryDisk that records what it is asked to do, and fails on demand.
#pragma once

#include "common/env.hpp"
#include "tests/common/files/memory_disk.hpp"

#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace lockstep {

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
  std::vector<std::byte> read_first(const std::string& path, std::uint64_t most) override;
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

  /// How often somebody waited for better times.
  std::size_t pauses() const { return pauses_; }

 private:
  friend class MemoryFile;
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
