// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Data of a job on their way: loaded in advance, or by another rank.
#include "comm/agreement.hpp"
#include "common/env.hpp"
#include "data/sets/leave_out.hpp"
#include "data/sets/shards.hpp"
#include "data/shared_set.hpp"
#include "tests/support/forwarding_communicator.hpp"
#include "tests/support/messages.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/trainer/training/setup_fixture.hpp"

#include <unistd.h>

namespace lockstep::setup_test {
namespace {

TEST(DatasetOptionsTest, TheListIsReadWhereTheJobHasNot) {
  const testing::TemporaryDirectory directory;
  Job job = job_of("data");
  job.train.seed = 77;
  EXPECT_EQ(dataset_options(job).leave_out, nullptr);
  EXPECT_EQ(dataset_options(job).seed, 77U);
  EXPECT_EQ(dataset_options(job).cache, user_cache());
  job.data.leave_out_file = directory.path() + "/list";
  std::ofstream(job.data.leave_out_file) << "3\n5\n";
  const auto list = dataset_options(job).leave_out;
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->entries.size(), 2U);
  job.data.leave_out = std::make_shared<LeaveOutList>();
  EXPECT_EQ(dataset_options(job).leave_out, job.data.leave_out);
}

TEST(LoadInAdvanceTest, AnErrorComesWithTheDataAndNamesItsKey) {
  Job job = job_of("data");
  job.data.set = "mnist";
  job.data.root = "/nowhere";
  EXPECT_THROW(load_in_advance(job).get(), MissingDataError);
  job.data.train_samples = 11;
  job.places["data.train_samples"] = "job.yaml:2:9: ";
  const std::string text = message_of<ConfigError>([&] { parts_of(job, {10, 64, 0}); });
  EXPECT_EQ(text.substr(0, 34), "job.yaml:2:9: data.train_samples: ");
  job.data.train_samples = 9;
  EXPECT_EQ(parts_of(job, {10, 64, 0}).train, 9);
}

TEST(LoadInAdvanceTest, ThePlaceThatARunRemembersIsForRootAutoAlone) {
  const testing::TemporaryDirectory directory;
  const std::string own = directory.path("own"), remembered = directory.path("remembered");
  Job job = job_of("data");
  for (const std::string& place : {own, remembered})
    write_in_shards(Env::posix(), dataset_options(job), place, {});
  job.data.set = "shards";
  const auto found_by = [&](const std::string& root) {
    job.data.root = root;
    return load_in_advance(job, DataCopy::kOwn, remembered).get().sets->directory;
  };
  EXPECT_EQ(found_by("auto"), remembered);
  EXPECT_EQ(found_by(own), own);
}

/// As training says it, which has the set.
TEST(PartsOfTest, PlacesThatTheTrainingHalfHasNotAreRefused) {
  Job job = job_of("data");
  job.data.set = "mnist";
  job.data.train_samples = 0;
  const auto leave_out = [&](const char* list) {
    job.data.leave_out = std::make_shared<const LeaveOutList>(parse_leave_out(list, "list"));
  };
  const auto refusal = [&](std::int64_t samples) {
    return message_of<ConfigError>([&] { parts_of(job, {samples, 64, 0}); });
  };
  leave_out("9\na.png\n");
  EXPECT_EQ(parts_of(job, {10, 64, 0}).train, 8);
  EXPECT_NE(refusal(9).find(
                "data.leave_out: list: line 1: '9' is not a place in the training half, which has 0 to 8"),
            std::string::npos)
      << refusal(9);
  leave_out("1\n01\n");
  EXPECT_NE(refusal(10).find("line 2: sample 1 is on line 1 already"), std::string::npos) << refusal(10);
  leave_out("1\n0\n");
  EXPECT_NE(refusal(2).find("names all of 2 training samples, and none is left to train on"),
            std::string::npos)
      << refusal(2);
  EXPECT_EQ(parts_of(job, {3, 64, 0}).train, 1);
}

DatasetFuture ready(const LoadedData& loaded) {
  std::promise<LoadedData> promise;
  promise.set_value(loaded);
  return promise.get_future().share();
}

TEST(AwaitDataTest, HasEndedWhereTheDataAreThere) {
  std::promise<LoadedData> promise;
  const DatasetFuture data = promise.get_future().share();
  EXPECT_FALSE(has_ended(data));
  promise.set_value({.sets = nullptr});
  EXPECT_TRUE(has_ended(data));
}

TEST(AwaitDataTest, ASetOfOneSampleIsHere) {
  const LoadedData loaded{.sets = std::make_shared<TrainTestData>()};
  EXPECT_FALSE(loaded.is_here());
  loaded.sets->train.labels.resize(1);
  EXPECT_TRUE(loaded.is_here());
}

/// A rank of another host.
class Stranger final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  const std::string& host() const override { return host_; }

 private:
  std::string host_ = "elsewhere";
};

/// One rank has a set that is marked, and the others have none. Rank 2 may be on another host.
void expect_marked(bool offers, bool last_is_elsewhere, const std::array<bool, 3>& marked, int owner = 0) {
  const Job job = job_of("data");
  run_thread_ranks(3, [&](Communicator& ranks) {
    LoadedData mine{.sets = std::make_shared<TrainTestData>(), .options = dataset_options(job)};
    if (ranks.rank() == owner) {
      mine = load_in_advance(job).get();
      mine.sets->class_names = {"marked"};
      if (offers) mine.of_host = move_to_memory_file(*mine.sets);
    }
    Stranger stranger(ranks);
    Communicator& comm = last_is_elsewhere && ranks.rank() == 2 ? stranger : ranks;
    const LoadedData loaded = await_data(job, comm, ready(mine)).get();
    EXPECT_EQ(loaded.sets, mine.sets);
    EXPECT_EQ(loaded.sets->train.size(), 128);
    EXPECT_EQ(loaded.sets->class_names == std::vector<std::string>{"marked"}, at(marked, ranks.rank()))
        << ranks.rank();
  });
}

TEST(AwaitDataTest, ComeFromTheMemoryOfTheHostOrAreLoadedThen) {
  expect_marked(true, false, {true, true, true});
  expect_marked(true, false, {true, true, true}, 1);
  expect_marked(true, true, {true, true, false});
  expect_marked(false, false, {true, false, false});
}

TEST(AwaitDataTest, ARankThatFailedSaysSoAndTheOthersGoOnUntilTheyAgree) {
  const Job job = job_of("data");
  run_thread_ranks(2, [&](Communicator& comm) {
    std::promise<LoadedData> promise;
    if (comm.rank() == 0)
      promise.set_value({.sets = std::make_shared<TrainTestData>(), .options = dataset_options(job)});
    else
      promise.set_exception(std::make_exception_ptr(IoError("a disk")));
    const DatasetFuture in_advance = promise.get_future().share(), data = await_data(job, comm, in_advance);
    if (comm.rank() == 0)
      EXPECT_EQ(data.get().sets->train.size(), 0);
    else
      EXPECT_THROW(data.get(), IoError);
    EXPECT_EQ(test::error_of<AgreedError>([&] { set_up(job, comm, in_advance); }),
              comm.rank() == 0 ? "rank 1 failed" : "rank 1 on " + comm.host() + ": a disk");
  });
}

/// A rank's end of a group whose last rank seems to be in another process. All hear another number of it.
class OfTwoProcesses final : public test::ForwardingCommunicator {
 public:
  using ForwardingCommunicator::ForwardingCommunicator;
  std::vector<std::byte> all_gather(std::span<const std::byte> mine) override {
    const pid_t process = ::getpid();
    std::vector<std::byte> all = ForwardingCommunicator::all_gather(mine);
    if (std::ranges::equal(mine, std::as_bytes(std::span(&process, 1)))) all.back() ^= std::byte{1};
    return all;
  }
};

TEST(ShareChecksTest, TheProcessesOfAHostCompareBlocksOfASetOnceBetweenThem) {
  const testing::TemporaryDirectory directory;
  Job job = job_of("data");
  job.model = "linear";
  write_in_shards(Env::posix(), dataset_options(job), directory.path("digits"), {});
  job.data.set = "shards";
  job.data.root = directory.path("digits");
  run_thread_ranks(2, [&](Communicator& ranks) {
    OfTwoProcesses comm(ranks);
    const JobSetup setup = set_up(job, comm, load_in_advance(job));
    for (const Dataset* half : {&setup.data->train, &setup.data->test})
      EXPECT_EQ(half->store->make_shared_checks(), nullptr) << half->name << ": they share theirs";
  });
}

}  // namespace
}  // namespace lockstep::setup_test
