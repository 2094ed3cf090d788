// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// Pages that launchers really print, and what is recognised in them.
#include "trainer/tools/doctor_report.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep {
namespace {

struct Page {
  const char* id;
  const char* text;
};

const Page kPages[] = {
    {"not-enough-slots",
     "--------------------------------------------------------------------------\n"
     "There are not enough slots available in the system to satisfy the 64\nslots that were requested by the "
     "application:\n"},
    {"ssh-login", "me@node2: Permission denied (publickey,password).\n"},
    {"host-name", "ssh: Could not resolve hostname nosuch: Name or service not known\n"},
    {"no-orted", "bash: line 1: orted: command not found\n"},
    {"host-unreachable", "ssh: connect to host node2 port 22: No route to host\n"},
    {"ports", "A process or daemon was unable to complete a connection\nto another process:\n"},
    {"process-vm-readv", "[node1:00042] Read -1, expected 87360, errno = 1\n"},
    {"root", "mpirun has detected an attempt to run as root.\n"},
    {"other-mpi",
     "The application appears to have been direct launched using \"srun\",\nbut OMPI was not built with "
     "SLURM's PMI support and therefore cannot\nexecute.\n"},
    {"killed", "mpirun noticed that process rank 1 with PID 0 on node node1 exited on signal 9 (Killed).\n"},
    {"peer-lost",
     "lockstep: rank 0 of 2 on node1 waited 2 s for the other ranks in an all-reduce: a rank died\n"},
};

TEST(LaunchLogTest, EachPageIsRecognised) {
  for (const Page& page : kPages) {
    const auto findings = read_launch_log(page.text);
    ASSERT_EQ(findings.size(), 1U) << page.id;
    EXPECT_EQ(findings[0].id, page.id);
    EXPECT_FALSE(findings[0].fix.empty());
  }
}

TEST(LaunchLogTest, AHealthyRunSaysNothing) {
  EXPECT_TRUE(
      read_launch_log("2 ranks on 1 host, cpu (AVX-512), 1 thread each, backend mpi\nepoch 1/2\n").empty());
}

}  // namespace
}  // namespace lockstep
