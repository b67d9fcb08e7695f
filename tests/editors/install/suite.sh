#!/usr/bin/env bash
# Packages of another Debian suite, without touching this system: an apt with a state folder of its own.
#
#   suite.sh STATE SUITE alone PREFIX PACKAGE…            unpacks exactly these into PREFIX
#   suite.sh STATE SUITE whole PREFIX PROGRAM PACKAGE…    unpacks them with all their libraries, libc too,
#       and makes PROGRAM (a path in PREFIX) run from there: own interpreter and rpath, by patchelf
set -euo pipefail
state=$1/$2 suite=$2 how=$3 prefix=$4
shift 4
mkdir -p "$state"/{lists/partial,cache/archives/partial,etc/preferences.d,etc/sources.list.d,dpkg,debs} "$prefix"
touch "$state/dpkg/status"
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -oE 'https?://[^ ]+/debian/?( |$)' | sed -n 1p | tr -d ' ') || true
: "${mirror:?no Debian mirror in /etc/apt}"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" > "$state/etc/sources.list"
options=(
  -o Dir::State="$state" -o Dir::Cache="$state/cache" -o Dir::State::status="$state/dpkg/status"
  -o Dir::Etc::sourcelist="$state/etc/sources.list" -o Dir::Etc::sourceparts="$state/etc/sources.list.d"
  -o Dir::Etc::preferencesparts="$state/etc/preferences.d" -o Dir::Etc::preferences="$state/etc/none"
  -o APT::Architecture=amd64 -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3
)
apt-get "${options[@]}" update

if [ "$how" = alone ]; then
  (cd "$state/debs" && apt-get "${options[@]}" download "$@")
  for package in "$state"/debs/*.deb; do dpkg -x "$package" "$prefix"; done
else
  program=$prefix/$1
  shift
  apt-get "${options[@]}" -y -d --no-install-recommends install "$@"
  for package in "$state"/cache/archives/*.deb; do dpkg -x "$package" "$prefix"; done
  loader=$(find "$prefix" -name ld-linux-x86-64.so.2 | head -1)
  [ ! -L "$program" ] || program=$(readlink -f "$program")
  patchelf --set-interpreter "$loader" --force-rpath \
    --set-rpath "$prefix/usr/lib/x86_64-linux-gnu:$prefix/lib/x86_64-linux-gnu" "$program"
fi
rm -rf "$state"
