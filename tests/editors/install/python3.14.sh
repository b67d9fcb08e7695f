#!/usr/bin/env bash
# Python 3.14 of Debian forky, unpacked, for `warpline attach`: python3.14.sh FOLDER
set -euo pipefail
folder=$1 prefix=$1/prefix
"$(dirname "$0")/suite.sh" "$folder/apt" forky whole "$prefix" usr/bin/python3.14 python3.14 libc6
ln -sf "$prefix/usr/bin/python3.14" "$folder/python3.14"
"$folder/python3.14" --version
