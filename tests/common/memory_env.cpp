// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// A disk in memory, for tests. A base, what was written and not synced, power losses, and faults of its calls.
#include "tests/common/memory_env.hpp"

#include "common/error.hpp"
#include "tests/support/prelude.hpp"

namespace lockstep {

// The durability model behind the power-loss tests.

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

// The Env of the fault tests.

namespace {

std::string last_component(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

class FileInMemory : public WritableFile {
 public:
  FileInMemory(MemoryEnv& env, int node, std::string path) : env_(env), node_(node), path_(std::move(path)) {}

  void write(std::span<const std::byte> bytes) override { env_.write(node_, path_, bytes); }
  void sync() override {
    env_.begin("fsync", path_);
    env_.record({.kind = DiskOp::Kind::kSync, .node = node_});
  }
  void close() override { env_.begin("close", path_); }

 private:
  MemoryEnv& env_;
  int node_;
  std::string path_;
};

std::vector<std::byte>& MemoryEnv::file(const std::string& path) {
  return disk_.nodes[static_cast<std::size_t>(existing("open", path))].data;
}

void MemoryEnv::fail_at(std::size_t call, bool for_good) {
  calls_ = 0;
  fail_at_ = call;
  for_good_ = for_good;
}

bool MemoryEnv::fails_now(const std::string& call, const std::string& path) {
  if (on_call) on_call(call, path);
  const std::size_t now = calls_++;
  return now == fail_at_ || (for_good_ && now > fail_at_);
}

void MemoryEnv::begin(const std::string& call, const std::string& path) {
  if (fails_now(call, path)) throw IoError(path + ": cannot " + call + ": injected I/O error");
}

int MemoryEnv::existing(const std::string& call, const std::string& path) const {
  const int node = disk_.find(path);
  if (node < 0) throw MissingDataError(path + ": cannot " + call + ": no such file or directory");
  return node;
}

void MemoryEnv::record(DiskOp op) {
  apply(&disk_, op);
  trace_.push_back(std::move(op));
}

void MemoryEnv::write(int node, const std::string& path, std::span<const std::byte> bytes) {
  const bool fails = fails_now("write", path);
  const std::size_t room = capacity_ - std::min(capacity_, disk_.used_bytes());
  const std::size_t fit = std::min(fails ? bytes.size() / 2 : bytes.size(), room);
  record({.kind = DiskOp::Kind::kWrite,
          .node = node,
          .offset = disk_.nodes[static_cast<std::size_t>(node)].data.size(),
          .data = {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(fit)}});
  if (fails) throw IoError(path + ": cannot write: injected I/O error");
  if (fit < bytes.size()) throw IoError(path + ": cannot write: no space left on device");
}

std::unique_ptr<WritableFile> MemoryEnv::create(const std::string& path) {
  begin("create", path);
  if (disk_.find(path) >= 0) throw IoError(path + ": cannot create: exists");
  const int node = static_cast<int>(disk_.nodes.size());
  record({.kind = DiskOp::Kind::kCreate,
          .node = node,
          .directory = existing("create", parent_directory(path)),
          .name = last_component(path)});
  return std::make_unique<FileInMemory>(*this, node, path);
}

std::vector<std::byte> MemoryEnv::read_part(const std::string& path, std::uint64_t most, bool at_end) {
  begin("read", path);
  const auto& bytes = file(path);
  const auto size = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(most, bytes.size()));
  const auto first = at_end ? bytes.end() - size : bytes.begin();
  return {first, first + size};
}

std::uint64_t MemoryEnv::size(const std::string& path) {
  begin("stat", path);
  return file(path).size();
}

void MemoryEnv::rename(const std::string& from, const std::string& to) {
  begin("rename", from);
  const int moved = existing("rename", from);
  record({.kind = DiskOp::Kind::kRename,
          .node = moved,
          .directory = existing("rename", parent_directory(from)),
          .name = last_component(from),
          .to_directory = existing("rename", parent_directory(to)),
          .to_name = last_component(to)});
  if (disk_.find(to) != moved) throw IoError(from + ": cannot rename: the target is not empty");
}

void MemoryEnv::sync_directory(const std::string& path) {
  begin("fsync the directory", path);
  record({.kind = DiskOp::Kind::kSyncDirectory, .node = existing("fsync", path)});
}

void MemoryEnv::make_directory(const std::string& path) {
  begin("create the directory", path);
  if (disk_.find(path) >= 0) return;
  record({.kind = DiskOp::Kind::kMakeDirectory,
          .node = static_cast<int>(disk_.nodes.size()),
          .directory = existing("create", parent_directory(path)),
          .name = last_component(path)});
}

std::vector<std::string> MemoryEnv::list(const std::string& path) {
  begin("list", path);
  std::vector<std::string> names;
  for (const auto& [name, node] : disk_.nodes[static_cast<std::size_t>(existing("list", path))].entries)
    names.push_back(name);
  return names;
}

bool MemoryEnv::exists(const std::string& path) {
  begin("stat", path);
  return disk_.find(path) >= 0;
}

void MemoryEnv::remove_file(const std::string& path) {
  begin("remove", path);
  const int node = disk_.find(path);
  if (node < 0) return;
  record({.kind = DiskOp::Kind::kRemove,
          .node = node,
          .directory = existing("remove", parent_directory(path)),
          .name = last_component(path)});
}

Entry MemoryEnv::entry(const std::string& path) {
  begin("stat", path);
  const int node = disk_.find(path);
  if (node < 0) return {};
  return {disk_.nodes[static_cast<std::size_t>(node)].directory ? EntryKind::kDirectory : EntryKind::kFile,
          1};
}

bool MemoryEnv::remove_directory(const std::string& path, std::span<const std::string> files) {
  const auto node = static_cast<std::size_t>(disk_.find(path));
  if (disk_.find(path) < 0) return true;
  if (!disk_.nodes[node].directory) return false;
  for (const std::string& name : files) remove_file(path + "/" + name);
  if (!disk_.nodes[node].entries.empty()) return false;
  remove_file(path);
  return true;
}

std::unique_ptr<FileClaim> MemoryEnv::claim(const std::string& path) {
  throw std::logic_error(path + ": locks are tested on the real file system");
}

}  // namespace lockstep
