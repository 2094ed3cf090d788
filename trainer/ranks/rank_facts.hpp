// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// What a rank has that all others must have, too (see equal_ranks.hpp).
#pragma once

#include "comm/communicator.hpp"
#include "data/dataset.hpp"
#include "models/network.hpp"
#include "trainer/config/job.hpp"
#include "trainer/ranks/device_choice.hpp"
#include "trainer/ranks/equal_ranks.hpp"

#include <string>

namespace lockstep {

/// Starts hashing the running executable on a thread of its own, so that program_facts need not wait. To be
/// called before MPI is brought up.
void hash_program_in_advance();

/// Of the file of the running executable; made by the first call.
const std::string& program_digest();

/// The executable, by the digest of its file; the command that it runs; the library that carries messages.
RankFacts program_facts(const std::string& command, const Communicator& comm);

/// Every key of the job, as to_yaml writes it. Of sets that are read from files data.root is left out: hosts
/// may have them in different places, and the data themselves are compared.
RankFacts job_facts(const Job& job);

/// What came of the job's names on this machine: the network's text, the data, the arithmetic of the device,
/// and the plugins and libraries that drive it.
RankFacts setup_facts(const Job& job, const Network& network, const TrainTestData& data,
                      const DeviceChoice& device);

RankFacts network_facts(const Network& network);
RankFacts data_facts(const TrainTestData& data);
RankFacts device_facts(const DeviceChoice& device);

/// Several lists as one.
RankFacts operator+(RankFacts left, const RankFacts& right);

}  // namespace lockstep
