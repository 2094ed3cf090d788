# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Completion of lockstep in fish, as lockstep.bash.
function __lockstep_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    command -q -- $program; or set program lockstep
    set -l last (string replace -r '^[^=]*=' '' -- $typed)
    set -l front (string sub -l (math (string length -- "$typed") - (string length -- "$last")) -- "$typed")
    for line in (command $program complete -- $words "$typed" 2>/dev/null)
        switch $line
            case ':files'
                printf "$front%s\n" (__fish_complete_path "$last")
            case ':folders'
                printf "$front%s\n" (__fish_complete_directories "$last" '')
            case '*'
                echo $line
        end
    end
end
complete -c lockstep -f -a '(__lockstep_complete)'
