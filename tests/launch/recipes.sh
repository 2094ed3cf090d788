# shellcheck shell=bash disable=SC2034,SC2154  # of the caller, and for it
# SPDX-FileCopyrightText: 2026 The Lockstep authors
# SPDX-License-Identifier: MIT
# Reads a Dockerfile and an Apptainer definition, and does what they say in root directories of this machine. To be sourced.
# $recipe is the file's name. The caller provides new_root NAME [LIKE] (a root directory: the image's, or a copy of that of another), in_root NAME
# COMMAND... (runs it there, in $folder, with ${environment[@]}), root_path NAME, and context (a tar archive of the clone,
# without what .dockerignore names, on standard output).

# instructions FILE: a Dockerfile's, one a line, without comments.
instructions() {
  awk '/^[[:space:]]*#/ { next } { sub(/\r$/, "") } /\\$/ { sub(/\\$/, ""); line = line $0; next } { line = line $0; if (line ~ /[^[:space:]]/) print line; line = "" }' "$1"
}

# words TEXT: as a shell reads them, with the variables of ${environment[@]}, one a line.
words() {
  # shellcheck disable=SC2016  # the inner shell's
  env -i "${environment[@]}" bash -c 'set -f; eval "set -- $1"; printf "%s\n" "$@"' words "$1"
}

# argv TEXT: ["lockstep", "doctor"], one word a line.
argv() { words "$(sed 's/^ *\[//; s/\] *$//; s/", *"/" "/g' <<<"$1")"; }

# folder_of PATH: itself, if a slash ends it.
folder_of() { case $1 in */) echo "${1%/}" ;; *) dirname "$1" ;; esac; }

# copy_from_stage STAGE DESTINATION SOURCE...: as COPY and %files do it; SOURCE may have wildcards.
copy_from_stage() {
  local from to=$2 source
  from=$(root_path "$1")
  to=$(root_path "$stage")$to
  shift 2
  case $to in */) mkdir -p "$to" ;; *) mkdir -p "$(dirname "$to")" ;; esac
  for source; do
    if [ -d "$from$source" ]; then # its contents are copied, not the folder
      mkdir -p "$to" && cp -a "$from$source/." "$to" || return 1
    else
      compgen -G "$from$source" | xargs -d '\n' cp -a -t "$(folder_of "$to")" || return 1
      case $to in */) ;; *) [ "$(folder_of "$to")/${source##*/}" = "$to" ] || mv "$(folder_of "$to")/${source##*/}" "$to" ;; esac
    fi
  done
}

# docker_copy ARGUMENTS: COPY's.
docker_copy() {
  local from='' list destination
  mapfile -t list < <(words "$1")
  if [[ ${list[0]} == --from=* ]]; then from=${list[0]#--from=} && list=("${list[@]:1}"); fi
  destination=${list[-1]}
  unset 'list[-1]'
  [[ $destination == /* ]] || destination=$folder/$destination
  if [ -n "$from" ]; then copy_from_stage "$from" "${destination%/.}" "${list[@]}"; return; fi
  [ "${list[*]}" = . ] || die 70 "COPY ${list[*]}: only '.' and --from are known"
  mkdir -p "$(root_path "$stage")$destination" && context | tar -C "$(root_path "$stage")$destination" -xf -
}

# with_arguments TEXT: words(), with the variables of ARG.
with_arguments() {
  local environment=("${arguments[@]}")
  words "$1"
}

# build_dockerfile FILE: its last stage is in the root $stage, its environment, folder, user and command in ${environment[@]},
# $folder, $user and ${command[@]}.
build_dockerfile() {
  local line word rest image arguments=() number=0
  while IFS= read -r line; do
    word=${line%% *} rest=${line#* }
    case $word in
      ARG) [[ $rest != *=* ]] || arguments+=("$(with_arguments "$rest")") ;;
      FROM)
        mapfile -t image < <(with_arguments "$rest")
        stage=${image[2]:-stage-$((number += 1))}
        environment=("PATH=$plain_path" HOME=/root) folder=/ user=root command=(/bin/sh)
        note "FROM ${image[0]}, as $stage"
        new_root "$stage" "${image[0]}"
        ;;
      ENV) while IFS= read -r word; do environment+=("$word"); done < <(words "$rest") ;;
      WORKDIR) folder=$rest && mkdir -p "$(root_path "$stage")$folder" ;;
      COPY)
        note "COPY $rest"
        docker_copy "$rest" || die 70 "COPY $rest failed"
        ;;
      RUN) note "RUN ${rest:0:100}" && logged_in_root RUN "$rest" ;;
      USER) user=$rest ;;
      CMD) mapfile -t command < <(argv "$rest") ;;
      *) die 70 "$1: $word is not known here" ;;
    esac
  done < <(instructions "$1")
}

# section FILE STAGE NAME: the lines of a section of a stage of an Apptainer definition, counted from 1; its arguments first.
section() {
  awk -v stage="$2" -v name="%$3" '/^Bootstrap:/ { n++; on = 0 } /^%/ { on = n == stage && $1 == name; if (on) print "#" substr($0, length(name) + 1); next } on' "$1"
}
header() { awk -v stage="$2" -v name="$3:" '/^Bootstrap:/ { n++ } n == stage && $1 == name { print $2 }' "$1"; }

# build_definition FILE: likewise; $user is who runs it, ${command[@]} what %runscript does with its arguments.
build_definition() {
  local number stages
  stages=$(grep -c '^Bootstrap: docker$' "$1")
  for ((number = 1; number <= stages; number++)); do
    stage=$(header "$1" "$number" Stage)
    environment=("PATH=$plain_path" HOME=/root) folder=/ user=root
    note "From: $(header "$1" "$number" From), Stage: $stage"
    new_root "$stage" "$(header "$1" "$number" From)"
    definition_files "$1" "$number"
    note "%post" && logged_in_root "%post" "set -e
$(section "$1" "$number" post)"
  done
  { section "$1" "$stages" environment && section "$1" "$stages" runscript; } >"$(root_path "$stage")/.run"
  note "%test" && logged_in_root "%test" "$(section "$1" "$stages" test)"
  command=(/bin/sh /.run)
}

definition_files() {
  local source destination from=''
  while read -r source destination; do
    case $source in
      '#'*) from=$(sed -n 's/^# *from *//p' <<<"$source $destination") ;;
      '') ;;
      .) mkdir -p "$(root_path "$stage")$destination" && context | tar -C "$(root_path "$stage")$destination" -xf - ;;
      *) copy_from_stage "$from" "$destination" "$source" || die 70 "%files from $from: $source cannot be copied" ;;
    esac
  done < <(section "$1" "$2" files)
}

# logged_in_root NAME SCRIPT
logged_in_root() { logged "container-$recipe" in_root "$stage" root /bin/sh -c "$2" || die 70 "$recipe: $1 failed"; }
