// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The durability model behind the power-loss tests.
#include "tests/common/files/memory_disk.hpp"

#include <algorithm>
#include <sstream>

namespace lockstep {
namespace {

using Kind = DiskOp::Kind;

bool changes_names(Kind kind) {
  return kind == Kind::kCreate || kind == Kind::kMakeDirectory || kind == Kind::kRename ||
         kind == Kind::kRemove;
}

bool is_synced(std::span<const DiskOp> ops, std::size_t index) {
  const DiskOp& op = ops[index];
  const bool names = changes_names(op.kind);
  return std::any_of(ops.begin() + static_cast<std::ptrdiff_t>(index), ops.end(), [&](const DiskOp& later) {
    return names ? later.kind == Kind::kSyncDirectory && later.node == op.directory
                 : later.kind == Kind::kSync && later.node == op.node;
  });
}

/// Decides the fate of what was not synced.
class Fate {
 public:
  Fate(const PowerLoss& loss, std::size_t ops)
      : loss_(loss), random_(loss.seed), names_end_(below(ops + 1)) {}

  bool keeps_name(std::size_t index) {
    switch (loss_.names) {
      case PowerLoss::Names::kDrop:
        return false;
      case PowerLoss::Names::kKeep:
        return true;
      case PowerLoss::Names::kPrefix:
        return index < names_end_;
      default:
        return below(2) == 0;
    }
  }

  /// The write as it is found; false if nothing of it is.
  bool keeps_data(std::vector<std::byte>* data) {
    auto mode = loss_.data;
    if (mode == PowerLoss::Data::kRandom) mode = static_cast<PowerLoss::Data>(below(4));
    if (mode == PowerLoss::Data::kDrop) return false;
    if (mode == PowerLoss::Data::kTorn) data->resize(below(data->size() + 1));
    if (mode == PowerLoss::Data::kZeros)
      std::fill(data->begin() + static_cast<std::ptrdiff_t>(below(data->size() + 1)), data->end(),
                std::byte{0});
    return true;
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  PowerLoss loss_;
  std::mt19937 random_;
  std::size_t names_end_;
};

}  // namespace

int MemoryDisk::find(const std::string& path) const {
  int node = 0;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part.empty() || part == ".") continue;
    const auto found = nodes[static_cast<std::size_t>(node)].entries.find(part);
    if (found == nodes[static_cast<std::size_t>(node)].entries.end()) return -1;
    node = found->second;
  }
  return node;
}

std::size_t MemoryDisk::used_bytes() const {
  std::size_t total = 0;
  for (const Node& directory : nodes)
    for (const auto& [name, node] : directory.entries)
      total += nodes[static_cast<std::size_t>(node)].data.size();
  return total;
}

void apply(MemoryDisk* disk, const DiskOp& op) {
  const auto node = static_cast<std::size_t>(op.node);
  if (node >= disk->nodes.size()) disk->nodes.resize(node + 1);
  auto& entries = disk->nodes[static_cast<std::size_t>(op.directory)].entries;
  if (op.kind == Kind::kCreate || op.kind == Kind::kMakeDirectory) {
    disk->nodes[node].directory = op.kind == Kind::kMakeDirectory;
    entries[op.name] = op.node;
  } else if (op.kind == Kind::kRemove) {
    entries.erase(op.name);
  } else if (op.kind == Kind::kWrite) {
    auto& data = disk->nodes[node].data;
    data.resize(std::max(data.size(), op.offset + op.data.size()));
    std::copy(op.data.begin(), op.data.end(), data.begin() + static_cast<std::ptrdiff_t>(op.offset));
  } else if (op.kind == Kind::kRename) {
    const auto source = entries.find(op.name);
    if (source == entries.end()) return;
    auto& targets = disk->nodes[static_cast<std::size_t>(op.to_directory)].entries;
    const auto target = targets.find(op.to_name);
    if (target != targets.end() && !disk->nodes[static_cast<std::size_t>(target->second)].entries.empty())
      return;
    const int moved = source->second;
    entries.erase(source);
    targets[op.to_name] = moved;
  }
}

PowerLoss PowerLoss::variant(std::uint32_t index) {
  return {static_cast<Names>(index % 4), static_cast<Data>(index / 4 % 5), index};
}

MemoryDisk after_power_loss(const MemoryDisk& base, std::span<const DiskOp> ops, const PowerLoss& loss) {
  MemoryDisk disk = base;
  Fate fate(loss, ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    DiskOp op = ops[i];
    if (!is_synced(ops, i)) {
      if (changes_names(op.kind) && !fate.keeps_name(i)) {
        if (static_cast<std::size_t>(op.node) >= disk.nodes.size())
          disk.nodes.resize(static_cast<std::size_t>(op.node) + 1);
        disk.nodes[static_cast<std::size_t>(op.node)].directory |= op.kind == Kind::kMakeDirectory;
        continue;
      }
      if (op.kind == Kind::kWrite && !fate.keeps_data(&op.data)) continue;
    }
    apply(&disk, op);
  }
  return disk;
}

}  // namespace lockstep
