// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Rank 0 makes it and tells the others where it is; the last one to let go of it frees it.
#include "comm/thread/thread_shared_memory.hpp"

#include "common/aligned_buffer.hpp"

#include <utility>

namespace lockstep {
namespace {

using Block = AlignedBuffer<std::byte>;

class ThreadSharedMemory final : public SharedMemory {
 public:
  explicit ThreadSharedMemory(std::shared_ptr<Block> block) : block_(std::move(block)) {}
  std::span<std::byte> bytes() override { return block_->span(); }

 private:
  std::shared_ptr<Block> block_;
};

}  // namespace

std::unique_ptr<SharedMemory> share_thread_memory(Communicator& comm, std::size_t bytes) {
  std::shared_ptr<Block> block;
  if (comm.rank() == 0) block = std::make_shared<Block>(bytes);
  const std::shared_ptr<Block>* owner = &block;
  comm.broadcast(std::as_writable_bytes(std::span(&owner, 1)), 0);
  std::shared_ptr<Block> mine = *owner;
  comm.barrier();  // rank 0's own stays where it is until all have theirs
  return std::make_unique<ThreadSharedMemory>(std::move(mine));
}

}  // namespace lockstep
