// SPDX-FileCopyrightText: 2026 The Lockstep authors
// SPDX-License-Identifier: MIT
/// The emulated device as one that the program was not built for.
#pragma once

namespace lockstep::emulated {

/// false: asking for a kernel fails as on a GPU for which there is neither machine code nor PTX. Holds for
/// the whole process, and for asking only: kernels still run.
void set_built_for_this_device(bool built);

}  // namespace lockstep::emulated
