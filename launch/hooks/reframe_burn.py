# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
"""A check for ReFrame: every node of a partition burns, and every rank must PASS.

    reframe -c launch/hooks/reframe_burn.py -r
    reframe -c launch/hooks/reframe_burn.py -r -S LockstepBurn.level=2 -S LockstepBurn.program=/opt/bin/lockstep
"""
import reframe as rfm
import reframe.utility.sanity as sn


@rfm.simple_test
class LockstepBurn(rfm.RunOnlyRegressionTest):
    """Is this machine fit to train on?"""

    level = variable(int, value=1)  # noqa: F821, ReFrame's own
    program = variable(str, value="lockstep")  # noqa: F821
    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    time_limit = "30m"
    num_tasks = 0  # as many nodes as there are
    num_tasks_per_node = 1

    @run_before("run")  # noqa: F821
    def set_command(self):
        """One rank a node, which takes all of its cores, or its first GPU."""
        self.executable = self.program
        self.executable_opts = ["burn", f"--level {self.level}"]
        self.env_vars = {"COLUMNS": "1000"}

    @sanity_function  # noqa: F821
    def every_rank_passes(self):
        """The last line is the verdict of all."""
        return sn.assert_found(r"^burn: PASS \d+ ranks? on \d+ hosts?$", self.stdout)
