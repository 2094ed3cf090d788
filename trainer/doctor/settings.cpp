// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Names by their beginnings; secrets by the words in their names.
#include "trainer/doctor/settings.hpp"

#include <cctype>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace lockstep {
namespace {

constexpr std::array<std::string_view, 14> kOfInterest{
    "OMPI_MCA_", "OMPI_ALLOW_", "MPICH_",         "HYDRA_",       "NCCL_",          "UCX_",       "LOCKSTEP_",
    "CUDA_",     "OMP_NUM_",    "SLURM_CPUS_PER", "SLURM_NTASKS", "SLURM_MPI_TYPE", "SRUN_CPUS_", "ROCR_"};
/// What mpirun sets for its ranks by itself.
constexpr std::array<std::string_view, 8> kOfLaunchers{"OMPI_MCA_orte_", "OMPI_MCA_ess",
                                                       "OMPI_MCA_pmix",  "OMPI_MCA_initial_wdir",
                                                       "OMPI_MCA_shmem", "OMPI_MCA_mpi_oversubscribe",
                                                       "OMPI_MCA_opal_", "OMPI_MCA_rmaps_ppr"};
constexpr std::array<std::string_view, 9> kSecretWords{
    "TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "COOKIE", "_KEY", "TRANSPORTS", "AUTH"};

template <typename Names>
bool begins_with_one(std::string_view name, const Names& beginnings) {
  return std::ranges::any_of(beginnings, [&](std::string_view b) { return name.starts_with(b); });
}

bool is_secret(std::string_view name) {
  std::string upper(name);
  std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::ranges::any_of(kSecretWords, [&](auto word) { return upper.find(word) != upper.npos; });
}

}  // namespace

std::string masked(std::string_view name, std::string_view value) {
  if (is_secret(name)) return "***";
  const std::size_t scheme = value.find("://"), at = value.find('@');
  if (scheme == value.npos || at == value.npos || at < scheme) return std::string(value);
  return std::string(value.substr(0, scheme + 3)) + "***" + std::string(value.substr(at));
}

std::map<std::string, std::string> visible_settings(const char* const* environment) {
  std::map<std::string, std::string> settings;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const std::string_view name = entry.substr(0, entry.find('='));
    if (name.size() == entry.size() || !begins_with_one(name, kOfInterest) ||
        begins_with_one(name, kOfLaunchers))
      continue;
    settings[std::string(name)] = masked(name, entry.substr(name.size() + 1));
  }
  return settings;
}

}  // namespace lockstep
