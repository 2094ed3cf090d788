// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Files of others in a run's directory stay as they are, and so do targets of links.
#include "common/error.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/prelude.hpp"
#include "tests/trainer/checkpoint/checkpoint_support.hpp"
#include "trainer/checkpoint/checkpoint.hpp"
#include "trainer/checkpoint/directory.hpp"

#include <sys/stat.h>

namespace lockstep {

namespace {

namespace fs = std::filesystem;

class OwnershipTest : public ::testing::Test {
 protected:
  OwnershipTest() {
    fs::create_directory(victim_);
    for (const char* name : {"precious", "model.safetensors", "manifest.json"})
      write(victim_ + "/" + name, "mine");
    for (const std::int64_t step : {100, 200, 300}) save_checkpoint(env_, run_, make_state(step));
  }

  static void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

  void expect_victim_untouched() const {
    for (const char* name : {"precious", "model.safetensors", "manifest.json"})
      EXPECT_EQ(text_of(victim_ + "/" + name), "mine") << name;
  }

  /// Does the work of a start in the directory.
  void clean_up() { remove_leftovers(env_, run_), prune_checkpoints(env_, run_, {.last = 1, .best = false}); }

  Env& env_ = Env::posix();
  TemporaryDirectory place_;
  std::string victim_ = place_.path() + "/victim", run_ = place_.path() + "/run",
              checkpoints_ = run_ + "/checkpoints";
  const bool made_ = fs::create_directory(run_);
};

TEST_F(OwnershipTest, CleaningUpFollowsNoLink) {
  for (const char* name : {".tmp-evil", ".tmp-step-00000400", ".tmp-removed-step-00000050"})
    fs::create_directory_symlink(victim_, checkpoints_ + "/" + name);
  clean_up();
  save_checkpoint(env_, run_, make_state(400));
  expect_victim_untouched();
  EXPECT_EQ(load_checkpoint(env_, checkpoints_ + "/step-00000400").facts.step, 400);
}

TEST_F(OwnershipTest, CheckpointLinkedInFromAnotherRunStaysThereAndHere) {
  const std::string other = save_checkpoint(env_, victim_, make_state(50));
  fs::create_directory_symlink(other, checkpoints_ + "/step-00000050");
  clean_up();
  remove_checkpoints(env_, run_, {checkpoints_ + "/step-00000050"});
  EXPECT_TRUE(verify_checkpoint(env_, other).empty());
}

TEST_F(OwnershipTest, TemporaryNamesOfOthersAreLeftAlone) {
  write(checkpoints_ + "/.tmp-file", "mine");
  write(checkpoints_ + "/.tmp-step-00000400", "mine");
  fs::create_directories(checkpoints_ + "/.tmp-notes/folder");
  fs::create_directories(checkpoints_ + "/.tmp-step-00000500/folder");
  ASSERT_EQ(::mkfifo((checkpoints_ + "/.tmp-fifo").c_str(), 0600), 0);
  for (const std::int64_t step : {400, 500}) {
    clean_up();
    save_checkpoint(env_, run_, make_state(step));
  }
  EXPECT_EQ(text_of(checkpoints_ + "/.tmp-file"), "mine");
  EXPECT_EQ(text_of(checkpoints_ + "/.tmp-step-00000400"), "mine");
  for (const char* name : {".tmp-notes/folder", ".tmp-step-00000500/folder", ".tmp-fifo"})
    EXPECT_TRUE(fs::exists(checkpoints_ + "/" + name)) << name;
  EXPECT_EQ(find_latest(env_, run_, [](const std::string&) {})->state.facts.step, 500);
}

TEST_F(OwnershipTest, NotesInACheckpointAreNotPrunedAndStayWhereItIsRemoved) {
  write(checkpoints_ + "/step-00000100/notes.txt", "mine");
  clean_up();
  EXPECT_EQ(text_of(checkpoints_ + "/step-00000100/notes.txt"), "mine");
  EXPECT_TRUE(fs::exists(checkpoints_ + "/step-00000100/manifest.json"));
  EXPECT_FALSE(fs::exists(checkpoints_ + "/step-00000200")) << "the others are pruned";
  remove_checkpoints(env_, run_, {checkpoints_ + "/step-00000100"});
  EXPECT_EQ(text_of(checkpoints_ + "/.tmp-removed-step-00000100/notes.txt"), "mine");
}

TEST_F(OwnershipTest, LinkInPlaceOfTheCheckpointsIsRefused) {
  fs::rename(checkpoints_, place_.path() + "/elsewhere");
  fs::create_directory_symlink(place_.path() + "/elsewhere", checkpoints_);
  EXPECT_THROW(save_checkpoint(env_, run_, make_state(400)), IoError);
  EXPECT_EQ(list_checkpoints(env_, place_.path()).size(), 0U);
}

TEST_F(OwnershipTest, LockIsNotWrittenThroughLinksOrIntoFilesOfOthers) {
  const std::string lock = run_ + "/lock";
  fs::create_symlink(victim_ + "/precious", lock);
  EXPECT_THROW(env_.claim(lock), IoError);
  fs::remove(lock);
  fs::create_hard_link(victim_ + "/precious", lock);
  EXPECT_THROW(env_.claim(lock), IoError);
  fs::remove(lock);
  ASSERT_EQ(::mkfifo(lock.c_str(), 0600), 0);
  EXPECT_THROW(env_.claim(lock), IoError);
  expect_victim_untouched();
}

TEST_F(OwnershipTest, FileThatIsAlsoElsewhereIsReplacedByACopy) {
  fs::create_hard_link(victim_ + "/precious", run_ + "/metrics.jsonl");
  make_own(env_, run_ + "/metrics.jsonl");
  write(run_ + "/metrics.jsonl", "other");
  expect_victim_untouched();
}

}  // namespace

}  // namespace lockstep
