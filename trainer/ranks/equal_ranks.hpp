// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Before ranks work together they compare what must be the same on all of them: program, libraries, job,
/// network, data. A rank that differs would otherwise train something else without a word, or end all in an
/// error that says nothing about the cause.
#pragma once

#include "comm/agreement.hpp"
#include "comm/communicator.hpp"
#include "common/error.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/device_choice.hpp"

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// In the order in which differences are listed. The first that differs decides the exit code and the advice.
enum class FactKind { kProgram, kLibrary, kMachine, kJob, kNetwork, kCheckpoint, kData };

/// One thing that is to be the same on all ranks.
struct RankFact {
  FactKind kind = FactKind::kJob;
  std::string key;
  std::string value;
  std::string note = {};  ///< shown with the value, not compared: where it was found
};
using RankFacts = std::vector<RankFact>;

/// Compares `mine` over all ranks. Collective. Equal ranks exchange one digest of 32 bytes; only where digests differ do
/// the facts themselves travel.
/// @throws AgreedError, on every rank: one line with each key that differs, its values, and the ranks that
/// have them. 69 for program, libraries and machine, 2 for job and network, 65 for checkpoint and data
void expect_equal_ranks(Communicator& comm, const RankFacts& mine);

/// That error for the facts of all ranks, by rank, some of which differ.
AgreedError rank_difference(const std::vector<RankFacts>& facts, const std::vector<std::string>& hosts);

// Facts of a rank that all others must have, too.

/// The file of this program.
std::string program_path();
/// The files, as the loader calls them, of the libraries in memory whose names begin with one of these.
std::vector<std::filesystem::path> loaded_libraries(std::initializer_list<std::string_view> beginnings);

/// Starts hashing the running executable on a thread of its own, so that program_facts need not wait. To be
/// called before MPI is brought up.
void hash_program_in_advance();

/// The executable, by the digest of its file; the command that it runs; the library that carries messages.
RankFacts program_facts(const std::string& command, const Communicator& comm);

/// Every key of the job, as to_yaml writes it. Of sets that are read from files data.root is left out: hosts
/// may have them in different places, and the data themselves are compared.
RankFacts job_facts(const Job& job);

/// Facts resolved from the job's names on this machine: the network's text, the data, the arithmetic of the
/// device. Plugins and libraries that drive it are included.
RankFacts setup_facts(const Job& job, const Network& network, const TrainTestData& data,
                      const DeviceChoice& device);

RankFacts network_facts(const Network& network);
RankFacts data_facts(const TrainTestData& data);
RankFacts device_facts(const DeviceChoice& device);

/// Several lists as one.
RankFacts operator+(RankFacts left, const RankFacts& right);

}  // namespace lockstep
